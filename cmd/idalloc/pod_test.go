package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// open opens dir for a pod whose UID the environment names, or does not.
func open(t *testing.T, dir, pod, uid string) (*shelf, identity.Identity) {
	t.Helper()
	t.Setenv("POD_UID", uid)
	p := &inPod{global: &global{}, dir: dir}
	s, current, err := p.open(allocator.Options{Pod: pod, Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return s, current
}

// fill leaves in dir what a pod with an id leaves.
func fill(t *testing.T, dir, pod, uid string) {
	t.Helper()
	s, _ := open(t, dir, pod, uid)
	if err := s.claim(uid); err != nil {
		t.Fatal(err)
	}
	err := s.Publish(identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Epoch: 7, Pod: pod, Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
}

func hasID(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "id"))
	return err == nil
}

func TestARestartInPlaceKeepsTheID(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "worker-0", "uid-1")
	_, current := open(t, dir, "worker-0", "uid-1")
	if !current.Assigned() || !hasID(t, dir) {
		t.Errorf("the id of a pod whose container restarted is gone: %v", current)
	}
}

func TestAnotherPodsIDIsNotInForce(t *testing.T) {
	for name, pod := range map[string]struct{ name, uid string }{
		"another name":          {"worker-1", "uid-2"},
		"the same name, reborn": {"worker-0", "uid-2"},
		"another name, no UID":  {"worker-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, "worker-0", "uid-1")
			_, current := open(t, dir, pod.name, pod.uid)
			if current.Assigned() || hasID(t, dir) {
				t.Errorf("the id of an earlier pod is in force: %v", current)
			}
		})
	}
}

// Without POD_UID a successor of the same name is told apart only by the API server: until then
// nothing is announced, and what the files say goes as soon as the UID is known.
func TestWithoutAUIDNothingIsAnnounced(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "worker-0", "uid-1")
	s, current := open(t, dir, "worker-0", "")
	if current.Assigned() {
		t.Errorf("announced %v before anybody knows whose it is", current)
	}
	if err := s.claim("uid-2"); err != nil {
		t.Fatal(err)
	}
	if hasID(t, dir) {
		t.Error("the id of an earlier pod of the same name is in force")
	}
}

func TestADirectoryIsNamed(t *testing.T) {
	_, _, err := (&inPod{global: &global{}}).open(allocator.Options{Pod: "worker-0", Namespace: "shop"})
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--dir is empty") {
		t.Errorf("open is %v, want a usage error", err)
	}
}

func TestEveryFlagHasAnEnvironmentTwin(t *testing.T) {
	t.Setenv("IDALLOC_TIMEOUT", "7s")
	t.Setenv("IDALLOC_HTTP_ADDRESS", "127.0.0.1:1")
	root := newRoot()
	watch, _, err := root.Find([]string{"watch"})
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.ParseFlags([]string{"--http-address", ":2"}); err != nil {
		t.Fatal(err)
	}
	if err := fromEnvironment(watch.Flags()); err != nil {
		t.Fatal(err)
	}
	if got := watch.Flag("timeout").Value.String(); got != "7s" {
		t.Errorf("--timeout is %s, want the environment's 7s", got)
	}
	if got := watch.Flag("http-address").Value.String(); got != ":2" {
		t.Errorf("--http-address is %s, want the command line's :2", got)
	}
}

func TestAnnotationKeyIsChecked(t *testing.T) {
	for key, good := range map[string]bool{
		"idalloc.dev/assignment": true, "cdap.instances.assignment": true,
		"idalloc.dev/seal": false, "a b": false, "": false, "a/b/c": false,
	} {
		if err := (&global{annotationKey: key}).checkKey(); good != (err == nil) {
			t.Errorf("--annotation-key %q: %v", key, err)
		}
	}
}
