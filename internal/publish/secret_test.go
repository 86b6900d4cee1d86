package publish

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheSecretOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	first, err := New(dir).Secret()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "drain-secret")); err != nil || string(b) != first+"\n" { //nolint:gosec // a directory of the test
		t.Errorf("the file has %q, %v; the secret is %q", b, err, first)
	}
	d := New(dir)
	must(t, d.Publish(assigned(3, 5, 7)))
	if again, err := d.Secret(); err != nil || again != first {
		t.Errorf("the secret was %q and is %q, %v: the program knows the first", first, again, err)
	}
	if other, err := New(t.TempDir()).Secret(); err != nil || other == first {
		t.Errorf("another directory has %q, %v", other, err)
	}
}

func TestASecretThatIsTooShortIsNone(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "drain-secret"), []byte("\n"), 0o600))
	if secret, err := New(dir).Secret(); err != nil || len(secret) < 20 {
		t.Errorf("the secret is %q, %v: another process could guess it", secret, err)
	}
}
