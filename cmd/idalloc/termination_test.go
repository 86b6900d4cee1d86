package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLastSentenceIsTheTerminationMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	root := newRoot()
	command := func(name string) func(err error) string {
		return func(err error) string {
			t.Helper()
			if werr := os.WriteFile(path, []byte("before"), 0o600); werr != nil {
				t.Fatal(werr)
			}
			cmd, _, ferr := root.Find([]string{name})
			if ferr != nil {
				t.Fatal(ferr)
			}
			leaveWord(path, cmd, err)
			got, rerr := os.ReadFile(path) //nolint:gosec // a directory of the test
			if rerr != nil {
				t.Fatal(rerr)
			}
			return string(got)
		}
	}
	failed := errors.New("idalloc: no slot: waited for a free slot")
	for _, name := range []string{"init", "watch", "run", "install"} {
		if got := command(name)(failed); got != "error: "+failed.Error() {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, err := range map[string]error{"get": failed, "init": nil, "run": statusError{code: 3}} {
		if got := command(name)(err); got != "before" {
			t.Errorf("%s with %v writes %q", name, err, got)
		}
	}
	if got := command("init")(errors.New(strings.Repeat("x", 2*maxTermination))); len(got) != maxTermination {
		t.Errorf("%d bytes", len(got))
	}
	none := filepath.Join(t.TempDir(), "none")
	cmd, _, _ := root.Find([]string{"init"})
	if leaveWord(none, cmd, failed); exists(none) {
		t.Error("a file was made where there was none")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
