package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// opened opens dir for a pod. An empty UID is one that is not known yet.
func opened(t *testing.T, dir, pod, uid string) (*volume, identity.Identity) {
	t.Helper()
	v, current, err := open(dir, allocator.Options{Pod: pod, Namespace: "shop", PodUID: types.UID(uid)})
	if err != nil {
		t.Fatal(err)
	}
	return v, current
}

// fill writes the files that a pod with an id leaves in dir.
func fill(t *testing.T, dir, pod, uid string) {
	t.Helper()
	s, _ := opened(t, dir, pod, uid)
	must(t, s.adopt(uid))
	err := s.Publish(identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 7, Pod: pod, Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
}

func hasID(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "id"))
	return err == nil
}

func TestAnotherPodsIDIsNotInForce(t *testing.T) {
	for name, pod := range map[string]struct{ name, uid string }{
		"another name":          {"worker-1", "uid-2"},
		"the same name, reborn": {podName, "uid-2"},
		"another name, no UID":  {"worker-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, podName, podUID)
			_, current := opened(t, dir, pod.name, pod.uid)
			if current.Assigned() || hasID(t, dir) {
				t.Errorf("the id of an earlier pod is in force: %v", current)
			}
		})
	}
}

// Without POD_UID, only the API server can tell a new pod from an earlier one of the same name. Until then, nothing is
// announced, and the earlier pod's files are cleared as soon as the UID is known.
func TestWithoutAUIDNothingIsAnnounced(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, podName, podUID)
	s, current := opened(t, dir, podName, "")
	if current.Assigned() {
		t.Errorf("announced %v before it is known whose it is", current)
	}
	must(t, s.adopt("uid-2"))
	if hasID(t, dir) {
		t.Error("the id of an earlier pod of the same name is in force")
	}
}

// A person reads it as the last word of a container.
func TestADirectoryThatCannotBeUsedIsOneSentence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/idalloc"} {
		if _, _, err := open(dir, allocator.Options{Pod: podName, Namespace: "shop", PodUID: podUID}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want one line", dir, err)
		}
	}
}
