package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// A process finds the hidden files that an earlier process has left, and programs do not see them.
func TestWhatAProcessLeavesForTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "when", "needed")
	d := New(path)
	if d.Pod() != "" {
		t.Errorf("an empty directory belongs to %q", d.Pod())
	}
	if id, err := d.Noted(); err != nil || id.Assigned() {
		t.Errorf("noted in an empty directory: %v, %v", id, err)
	}
	if err := d.Note(identity.Identity{}); err != nil {
		t.Errorf("to forget nothing is no error: %v", err)
	}
	id := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 7, Pod: "worker-0", Namespace: "shop"}
	for _, err := range []error{d.SetPod("uid-1"), d.SetPod("uid-2"), d.Note(id)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := New(path)
	if next.Pod() != "uid-2" {
		t.Errorf("it belongs to %q", next.Pod())
	}
	if got, err := next.Noted(); err != nil || got != id {
		t.Errorf("noted: %+v, %v", got, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("a program sees %s", e.Name())
		}
	}
	must(t, next.Note(identity.Identity{State: identity.StateDraining, ID: identity.None}))
	if got, err := d.Noted(); err != nil || got.Assigned() {
		t.Errorf("noted after it was forgotten: %+v, %v", got, err)
	}
}

func TestADamagedNoteIsNotNone(t *testing.T) {
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, lastName), []byte("{"), 0o600))
	if _, err := New(path).Noted(); err == nil || !strings.Contains(err.Error(), "delete the pod") {
		t.Errorf("%v", err)
	}
}

func TestWhatCannotBeLeftIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	d := New(file)
	id := identity.Identity{State: identity.StateAssigned, ID: 3, Token: 7}
	for name, err := range map[string]error{"SetPod": d.SetPod("u"), "Note": d.Note(id), "SetLastStop": d.SetLastStop(1), "SetPaused": d.SetPaused(true)} {
		if err == nil || !strings.Contains(err.Error(), "choose another one with --dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if secret, err := d.Secret(); err == nil {
		t.Errorf("the secret is %q, and it cannot be read", secret)
	}
	if _, err := d.LastStop(); err == nil {
		t.Error("a file that is no directory has a number")
	}
}

func TestTheNextProcessKnowsTheLastStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids")
	if n, err := New(path).LastStop(); n != 0 || err != nil {
		t.Errorf("an empty directory has had %d stops, %v", n, err)
	}
	for _, want := range []int{1, 12} {
		must(t, New(path).SetLastStop(want))
		if n, err := New(path).LastStop(); n != want || err != nil {
			t.Errorf("the last stop is %d, %v; want %d", n, err, want)
		}
	}
	must(t, os.WriteFile(filepath.Join(path, stopName), []byte("many\n"), 0o600))
	if _, err := New(path).LastStop(); err == nil || !strings.Contains(err.Error(), "delete the pod") {
		t.Errorf("a number that cannot be read: %v", err)
	}
}

func TestTheNextProcessKnowsOfAPause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids")
	if New(path).Paused() {
		t.Error("it was not paused")
	}
	for _, paused := range []bool{false, true, true, false} {
		must(t, New(path).SetPaused(paused))
		if New(path).Paused() != paused {
			t.Errorf("paused is not %t", paused)
		}
	}
}
