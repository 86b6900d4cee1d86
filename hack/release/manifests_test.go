package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// checkDigests sees that all that is installed names the images that were made, and no other.
func checkDigests(t *testing.T, release map[string][]byte) {
	t.Helper()
	image := regexp.MustCompile(`ghcr\.io/idalloc/(idalloc|idalloc-autoscaler|idalloc-controller)[:@][^'"\s\x60)]+`)
	check := func(name, text string) (found int) {
		for _, named := range image.FindAllStringSubmatch(text, -1) {
			found++
			if want := "ghcr.io/idalloc/" + named[1] + ":v1.2.3@" + digest(t, release[named[1]+"_v1.2.3_image.tar"]); named[0] != want {
				t.Errorf("%s has %s, not %s", name, named[0], want)
			}
		}
		return found
	}
	for _, archive := range []string{"idalloc_v1.2.3_chart.tgz", "idalloc_v1.2.3_config.tgz"} {
		for name, content := range unpacked(t, release[archive]) {
			found := check(name, string(content))
			switch name {
			case "idalloc/Chart.yaml":
				if found != 2 {
					t.Errorf("%s names %d images", name, found)
				}
			case "config/controller/deployment.yaml", "config/inject/policy.yaml", "config/component/sidecar.yaml", "autoscaler/config/base/deployment.yaml":
				if found != 1 {
					t.Errorf("%s names %d images", name, found)
				}
			}
		}
	}
	program := filepath.Join(t.TempDir(), plugin)
	put(t, program, unpacked(t, release[plugin+"_v1.2.3_linux_amd64.tar.gz"])[plugin])
	if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // it is to run
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), program, "inject", "--help").CombinedOutput() //nolint:gosec // what was just built
	if err != nil || check(plugin, string(help)) != 1 {
		t.Errorf("%v: %s", err, help)
	}
}

// Whoever installs from a tag gets what the tag's manifests name, so they name a version: nothing that moves, and all the same.
func TestTheManifestsAndPagesNameTheVersionOfTheChart(t *testing.T) {
	chart, err := os.ReadFile("../../charts/idalloc/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	version := string(regexp.MustCompile(`(?m)^appVersion: (.+)$`).FindSubmatch(chart)[1])
	find := exec.CommandContext(t.Context(), "git", "grep", "-noE", `ghcr\.io/idalloc/[a-z-]+:[A-Za-z0-9._-]+|idalloc/config/[a-z]+\?ref=[A-Za-z0-9._-]+|newTag: [A-Za-z0-9._-]+|:latest\b`,
		"--", "*.md", "*.yaml", "internal/inject/inject.go")
	find.Dir = "../.."
	out, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, version) {
			t.Errorf("%s: name %s", line, version)
		}
	}
	for tag, right := range map[string]bool{version: true, "v987.6.5": false, "v987.6.5-4-g550dccb": true, "e2e": true} {
		r := release{root: "../..", version: tag}
		if err := r.tagged(); (err == nil) != right {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// digest returns that of the image in an OCI archive.
func digest(t *testing.T, archive []byte) string {
	t.Helper()
	var index v1.IndexManifest
	if err := json.Unmarshal(files(t, bytes.NewReader(archive))["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	return index.Manifests[0].Digest.String()
}

func put(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil { //nolint:gosec // in a directory of the test
		t.Fatal(err)
	}
}
