package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestInstallReplacesAProgramInOneStep(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "kubectl-idalloc")
	first, second := bytes.Repeat([]byte("first"), 1<<20), []byte("second")
	if err := os.WriteFile(program, first, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := install(program, dir); err != nil {
		t.Fatal(err)
	}
	running, err := os.Open(filepath.Join(dir, "idalloc")) //nolint:gosec // a directory of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Close() })
	if err := os.WriteFile(program, second, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := install(program, dir); err != nil {
		t.Fatal(err)
	}

	if got := content(t, dir); !bytes.Equal(got["idalloc"], second) || len(got) != 1 {
		t.Errorf("the directory has %d files, idalloc is %q", len(got), got["idalloc"])
	}
	info, err := os.Stat(filepath.Join(dir, "idalloc"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o555 {
		t.Errorf("mode %s", info.Mode())
	}
	var before bytes.Buffer
	if _, err := before.ReadFrom(running); err != nil || !bytes.Equal(before.Bytes(), first) {
		t.Errorf("who had the first copy open reads %d other bytes: %v", before.Len(), err)
	}
}

func TestAnInstallThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "idalloc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := install(os.Args[0], dir); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if got := content(t, dir); len(got) != 0 {
		t.Errorf("%d files are left", len(got))
	}
	if err := install(os.Args[0], filepath.Join(dir, "none")); err == nil {
		t.Error("the directory was made")
	}
}

// content returns the files of a directory by name, also the hidden ones.
func content(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil { //nolint:gosec // a directory of the test
			t.Fatal(err)
		}
	}
	return files
}
