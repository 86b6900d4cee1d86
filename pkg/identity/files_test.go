package identity_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/identity"
)

func TestReadBeforeAnythingIsPublished(t *testing.T) {
	_, err := identity.Read(t.TempDir())
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "is the volume of the idalloc container mounted there?") {
		t.Errorf("error is %v", err)
	}
}

func TestReadOfADamagedFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, identity.FileName), []byte(`{"state":"assigned"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Read(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// follow runs Follow in the background. The channels carry what it called fn with, and what it returned.
func follow(t *testing.T, dir string) (seen <-chan identity.Identity, end <-chan error, cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	identities, ended := make(chan identity.Identity, 100), make(chan error, 1)
	go func() { ended <- identity.Follow(ctx, dir, func(id identity.Identity) { identities <- id }) }()
	return identities, ended, cancel
}

func next(t *testing.T, seen <-chan identity.Identity) identity.Identity {
	t.Helper()
	select {
	case id := <-seen:
		return id
	case <-time.After(10 * time.Second):
		t.Fatal("Follow noticed nothing")
		return identity.Identity{}
	}
}

func TestFollowNoticesEveryLastingChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	seen, end, cancel := follow(t, dir)
	d := publish.New(dir)
	for _, want := range []identity.Identity{assigned(3, 5), pending(5), assigned(1, 5), assigned(1, 8)} {
		if err := d.Publish(want); err != nil {
			t.Fatal(err)
		}
		if got := next(t, seen); got != want {
			t.Errorf("Follow says %+v, want %+v", got, want)
		}
	}
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow returned %v", err)
	}
}

// A file that was put there by other means, without idalloc's link, is followed, too.
func TestFollowOfAFileWithoutTheLink(t *testing.T) {
	dir := t.TempDir()
	put := func(id identity.Identity) {
		t.Helper()
		b, err := json.Marshal(id)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "next"), b, 0o600)
		}
		if err == nil {
			err = os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, identity.FileName))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(assigned(3, 5))
	seen, _, _ := follow(t, dir)
	for _, want := range []identity.Identity{assigned(3, 5), assigned(3, 8)} {
		put(want)
		if got := next(t, seen); got != want {
			t.Errorf("Follow says %+v, want %+v", got, want)
		}
	}
}

func TestFollowEndsWhenTheFilesAreGone(t *testing.T) {
	dir := t.TempDir()
	if err := publish.New(dir).Publish(assigned(3, 5)); err != nil {
		t.Fatal(err)
	}
	seen, end, _ := follow(t, dir)
	next(t, seen)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-end; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Follow returned %v", err)
	}
}
