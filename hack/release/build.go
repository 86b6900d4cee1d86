package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// product is a program that is built for several platforms.
type product struct {
	// name is that of the program, pkg the directory of its package.
	name, pkg string
	platforms []platform
	// beside is a script that is packed beside the program, empty for none. Windows has one of its own, which ends with .cmd.
	beside string
	// image is what its image is called in a registry and in manifests, empty if there is none; about says there what the program is.
	image, about string
}

// plugin is the program for kubectl. sidecar is the image that it and the manifests add to pods, so it is made before them.
const (
	plugin  = "kubectl-idalloc"
	sidecar = "ghcr.io/idalloc/idalloc"
)

const windows = "windows"

type platform struct{ os, arch string }

// products returns what a release has.
func products() []product {
	pods := []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	people := []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {windows, "amd64"}, {windows, "arm64"}}
	return []product{
		{
			name: "idalloc", pkg: "./cmd/idalloc", platforms: pods,
			image: sidecar, about: "A small integer id of its own for every replica of a Kubernetes workload",
		},
		{
			name: "idalloc-autoscaler", pkg: "./autoscaler/cmd/idalloc-autoscaler", platforms: pods,
			image: "ghcr.io/idalloc/idalloc-autoscaler", about: "Scales a Kubernetes workload by the load of its partitions",
		},
		{
			name: "idalloc-controller", pkg: "./controller/cmd/idalloc-controller", platforms: pods,
			image: "ghcr.io/idalloc/idalloc-controller", about: "Gives ids to the pods of a Kubernetes workload before they start",
		},
		{name: plugin, pkg: "./cmd/kubectl-idalloc", platforms: slices.Concat(pods, people), beside: "cmd/kubectl-idalloc/kubectl_complete-idalloc"},
	}
}

// limited returns the products for one platform.
func limited(all []product, only string) ([]product, error) {
	var found []product
	for _, p := range all {
		p.platforms = slices.DeleteFunc(slices.Clone(p.platforms), func(on platform) bool { return on.os+"/"+on.arch != only })
		if len(p.platforms) > 0 {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("-only %s: no program is built for that", only)
	}
	return found, nil
}

// binary is a program that was built.
type binary struct {
	product

	on      platform
	content []byte
	// path is that of a file with the content, for tools that read its build information.
	path string
}

// file returns the name of the program's file.
func (b binary) file() string {
	if b.on.os == windows {
		return b.name + ".exe"
	}
	return b.name
}

// stem begins the names of the release's files about the program.
func (r *release) stem(b binary) string {
	return strings.Join([]string{b.name, r.version, b.on.os, b.on.arch}, "_")
}

// build compiles as make build does, and leaves out what differs between two machines.
func (r *release) build(ctx context.Context, p product, on platform) (binary, error) {
	dir, err := os.MkdirTemp("", "idalloc-release-")
	if err != nil {
		return binary{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // its content is in memory by then
	b := binary{product: p, on: on, path: filepath.Join(dir, p.name)}
	// The version control's stamp would be missing in a tree without git, and differ with the tags that a clone has.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "nethttpomithttp2", //nolint:gosec // fixed commands
		"-ldflags", "-s -w -buildid= -X main.version="+r.version+" -X main.image="+r.reference(sidecar), "-o", b.path, ".")
	cmd.Dir = filepath.Join(r.root, p.pkg) // in the module that it is of
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.os, "GOARCH="+on.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return binary{}, fmt.Errorf("%s for %s/%s: %w\n%s", p.name, on.os, on.arch, err, out)
	}
	b.content, err = os.ReadFile(b.path)
	return b, err
}
