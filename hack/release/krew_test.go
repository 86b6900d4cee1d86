package main

import (
	"archive/zip"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// krew's own program judges the manifest of all platforms. It does not download the archives, which nobody has published.
func TestKrewAcceptsTheManifest(t *testing.T) {
	r := release{out: t.TempDir(), version: version, products: products()}
	for _, p := range r.products {
		for _, on := range p.platforms {
			for _, ending := range []string{".tar.gz", ".zip"} {
				if err := r.write(r.stem(binary{product: p, on: on})+ending, []byte(p.name+on.os+on.arch)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := r.krew(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", r.path("idalloc.yaml")).CombinedOutput() //nolint:gosec // a file of the test
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// Windows does not run a shell script. kubectl there finds a program without its ending, as long as PATHEXT has that.
func TestWindowsCompletesByAScriptOfItsOwn(t *testing.T) {
	r := release{root: "../..", out: t.TempDir(), version: version}
	for _, p := range products() {
		for _, on := range p.platforms {
			if p.name != plugin || on.os != windows {
				continue
			}
			b := binary{product: p, on: on}
			if err := r.archive(b, nil); err != nil {
				t.Fatal(err)
			}
			packed, err := zip.OpenReader(r.path(r.stem(b) + ".zip"))
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, 0, len(packed.File))
			for _, f := range packed.File {
				names = append(names, f.Name)
			}
			if err := packed.Close(); err != nil {
				t.Error(err)
			}
			if !slices.Contains(names, "kubectl_complete-idalloc.cmd") || slices.ContainsFunc(names, func(n string) bool { return !strings.Contains(n, ".") && n != "LICENSE" }) {
				t.Errorf("%s: %v", on.arch, names)
			}
		}
	}
}
