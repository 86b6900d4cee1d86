package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const table = `N,protocol,got an id,total s
10,idalloc,10,0.2
100,idalloc,100,0.9
10,cdap,10,0.3
100,cdap,60,240
`

func TestEveryProtocolIsACurve(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.svg")
	if err := os.WriteFile(in, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(in, out); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(out) //nolint:gosec // the test's own file
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "idalloc", "cdap", "stopped, not done", "pods", "seconds until"} {
		if !strings.Contains(string(picture), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}

func TestATableWithoutTheColumnsIsRefused(t *testing.T) {
	for _, text := range []string{"", "N,protocol\n1,a\n", "N,protocol,got an id,total s\nx,a,1,1\n"} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
