package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	version = "v1.2.3"
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

// made makes a release of the project as it is, from a copy in dir that has no version control and permits the key.
func made(t *testing.T, dir string, mode fs.FileMode, key string) map[string][]byte {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = filepath.Join("..", "..")
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(list.Dir, name)) //nolint:gosec // a file of the project
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to := filepath.Join(dir, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, mode)); err != nil { //nolint:gosec // in a directory of the test
			t.Fatal(err)
		}
	}
	permit(t, dir, key)
	r := release{root: dir, out: filepath.Join(dir, "dist"), version: version, commit: commit, key: key, time: time.Unix(1_800_000_000, 0).UTC()}
	// One platform is enough for what is asked here: the others go the same way.
	if r.products, err = limited(products(), "linux/amd64"); err != nil {
		t.Fatal(err)
	}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := below(r.out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		files[e.name] = e.content
	}
	return files
}

func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	key, root := newKey(t), filepath.Join(t.TempDir(), "a")
	first := made(t, root, 0o600, key)
	second := made(t, filepath.Join(t.TempDir(), "somewhere", "else", "with a space"), 0o644, key)
	names := slices.Sorted(maps.Keys(first))
	want := []string{
		"SHA256SUMS", "SHA256SUMS.sig", "idalloc-autoscaler_v1.2.3_image.tar", "idalloc-autoscaler_v1.2.3_linux_amd64.cdx.json", "idalloc-autoscaler_v1.2.3_linux_amd64.tar.gz", "idalloc-controller_v1.2.3_image.tar", "idalloc-controller_v1.2.3_linux_amd64.cdx.json", "idalloc-controller_v1.2.3_linux_amd64.tar.gz",
		"idalloc.yaml", "idalloc_v1.2.3.intoto.json", "idalloc_v1.2.3_chart.tgz", "idalloc_v1.2.3_config.tgz", "idalloc_v1.2.3_image.tar", "idalloc_v1.2.3_linux_amd64.cdx.json", "idalloc_v1.2.3_linux_amd64.tar.gz",
		"kubectl-idalloc_v1.2.3_linux_amd64.cdx.json", "kubectl-idalloc_v1.2.3_linux_amd64.tar.gz",
	}
	if !slices.Equal(names, want) || len(second) != len(want) {
		t.Fatalf("files %q and %d", names, len(second))
	}
	for _, name := range names {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs", name)
		}
	}

	t.Run("checksums", func(t *testing.T) {
		for _, name := range names[2:] {
			if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name); !strings.Contains(string(first["SHA256SUMS"]), line) {
				t.Errorf("no line %q", line)
			}
		}
	})
	t.Run("chart", func(t *testing.T) {
		chart := string(unpacked(t, first["idalloc_v1.2.3_chart.tgz"])["idalloc/Chart.yaml"])
		if !strings.Contains(chart, "\nversion: \"1.2.3\"\n") || !strings.Contains(chart, "\nappVersion: \"v1.2.3\"\n") {
			t.Errorf("it has another version than the release:\n%s", chart)
		}
	})
	t.Run("provenance", func(t *testing.T) { checkProvenance(t, first) })
	t.Run("digests", func(t *testing.T) { checkDigests(t, first) })
	t.Run("the way to check it", func(t *testing.T) { checkTheCheck(t, root, first) })
	for _, name := range []string{"idalloc", "idalloc-autoscaler", "idalloc-controller"} {
		program := unpacked(t, first[name+"_v1.2.3_linux_amd64.tar.gz"])[name]
		t.Run(name+"'s bill", func(t *testing.T) { checkBill(t, first[name+"_v1.2.3_linux_amd64.cdx.json"], program) })
		t.Run(name+"'s image", func(t *testing.T) { checkImage(t, name, first[name+"_v1.2.3_image.tar"], program) })
		t.Run(name+" runs", func(t *testing.T) { runs(t, program) })
	}
}

// Helm takes semantic versions only, for which a number may not begin with 0.
func TestEachReleaseGivesItsChartAVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3-4-g550dccb": "1.2.3-4-g550dccb", "0550123": "0.0.0-g0550123",
		"550dccb-dirty": "0.0.0-g550dccb-dirty", "e2e": "0.0.0-ge2e", "release/1": "0.0.0-grelease-1",
	} {
		if got := semantic(version); got != want {
			t.Errorf("%s becomes %s, not %s", version, got, want)
		}
	}
}

func checkBill(t *testing.T, text, program []byte) {
	t.Helper()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if of := (*bom.Metadata.Component.Hashes)[0].Value; of != fmt.Sprintf("%x", sha256.Sum256(program)) {
		t.Errorf("it is about %s", of)
	}
	for _, name := range []string{"std", "k8s.io/client-go", "github.com/spf13/cobra"} {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool {
			return c.Name == name && c.Version != "" && c.PackageURL == "pkg:golang/"+name+"@"+c.Version
		}) {
			t.Errorf("%s is missing", name)
		}
	}
}

func checkImage(t *testing.T, name string, archive, program []byte) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files(t, bytes.NewReader(archive)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	named := manifest.Manifests[0]
	if called := named.Annotations["io.containerd.image.name"]; called != "ghcr.io/idalloc/"+name+":v1.2.3" {
		t.Errorf("it is called %q", called)
	}
	index, err := top.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if p := platforms.Manifests[0].Platform; !p.Equals(v1.Platform{OS: "linux", Architecture: "amd64"}) {
		t.Errorf("it is for %s", p)
	}
	image, err := index.Image(platforms.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	const label = "org.opencontainers.image."
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/" + name}) || c.Labels[label+"title"] != name || c.Labels[label+"revision"] != commit {
		t.Errorf("config %+v", c)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(files(t, content)[name], program) {
		t.Error("the program in it is not the one of the archive")
	}
}

// runs sees that the program knows its version.
func runs(t *testing.T, program []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idalloc")
	if err := os.WriteFile(path, program, 0o700); err != nil { //nolint:gosec // it is to run
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput() //nolint:gosec // what was just built
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("%v: %s", err, out)
	}
}

func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	return files(t, r)
}

// files returns those of a tar archive by name.
func files(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	all, archive := map[string][]byte{}, tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}
