package main

import (
	"os/exec"
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
