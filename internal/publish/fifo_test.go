package publish

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// fifo puts a FIFO into the directory. To open one blocks until another process opens its other end.
func fifo(t *testing.T, dir, name string) {
	t.Helper()
	must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o666))
}

func TestAFIFOInTheDirectoryBlocksNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{podName, lastName, stopName, pausedName, SecretName, identity.FileName, swapPrefix + podName, swapPrefix + dataLink, "..gen-fifo"} {
		fifo(t, dir, name)
	}
	d := New(dir)
	if d.Pod() != "" || d.Paused() {
		t.Error("a FIFO says something")
	}
	for what, read := range map[string]func() error{
		"the withdrawn id": func() error { _, err := d.Noted(); return err },
		"the last stop":    func() error { _, err := d.LastStop(); return err },
		"the secret":       func() error { _, err := d.Secret(); return err },
		"the identity":     func() error { _, _, err := d.Current(); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "is not a file that idalloc wrote") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := d.SetPod("uid"); err != nil || d.Pod() != "uid" {
		t.Errorf("the pod is %q, %v", d.Pod(), err)
	}
}

func TestALinkToAFIFOIsNoGeneration(t *testing.T) {
	dir := t.TempDir()
	fifo(t, dir, "..gen-fifo")
	must(t, os.Symlink("..gen-fifo", filepath.Join(dir, dataLink)))
	id := identity.Pending("shop", "worker-a")
	must(t, New(dir).Publish(id))
	if got, there, err := New(dir).Current(); err != nil || !there || got != id {
		t.Errorf("%+v, %v, %v", got, there, err)
	}
}
