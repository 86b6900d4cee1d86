package identity

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// checkRead: what is read is safe to act on, and it survives a round trip.
func checkRead(t *testing.T, id Identity) {
	t.Helper()
	if id.Assigned() && (id.ID < 0 || id.ID >= id.Count) || !id.Assigned() && id.ID != None {
		t.Fatalf("%+v was read", id)
	}
	if !id.Assigned() && id.Owns([]byte("key")) {
		t.Fatalf("%+v acts under an id that it has not", id)
	}
	b, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	var again Identity
	if err := json.Unmarshal(b, &again); err != nil || again != id {
		t.Fatalf("%+v came back as %+v, %v", id, again, err)
	}
}

// Whatever stands in the file, Read returns an identity that is safe to act on or an error.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := Read(dir)
		if err != nil {
			if id != (Identity{}) {
				t.Fatalf("%+v was read with %v", id, err)
			}
			return
		}
		checkRead(t, id)
	})
}

// Follow calls its function once for every change that is published, and never with anything that Read
// would not return. The input is what is published, one after the other.
func FuzzFollow(f *testing.F) {
	f.Fuzz(func(t *testing.T, contents []byte) {
		dir := t.TempDir()
		follower := follower{dir: dir}
		var seen []Identity
		look := func() error { return follower.poll(func(id Identity) { seen = append(seen, id) }) }
		if err := look(); err != nil || len(seen) > 0 {
			t.Fatalf("nothing is published yet: %v, %v", seen, err)
		}
		var last Identity
		for i, content := range bytes.Split(contents, []byte("\n")) {
			swapIn(t, dir, strconv.Itoa(i), content)
			want, readErr := Read(dir)
			calls := len(seen)
			err := look()
			switch {
			case (err != nil) != (readErr != nil):
				t.Fatalf("%q: Read returns %v, Follow %v", content, readErr, err)
			case err != nil:
				return // Follow has ended
			case i > 0 && want == last && len(seen) != calls, (i == 0 || want != last) && len(seen) != calls+1:
				t.Fatalf("%d calls at the change from %+v to %+v", len(seen)-calls, last, want)
			case seen[len(seen)-1] != want:
				t.Fatalf("Follow says %+v, published is %+v", seen[len(seen)-1], want)
			}
			checkRead(t, want)
			last = want
			if err := look(); err != nil || len(seen) > calls+1 {
				t.Fatalf("a second look at the same: %d calls, %v", len(seen)-calls, err)
			}
		}
	})
}

// swapIn publishes a file as idalloc does: into a new directory that one link is then pointed at.
func swapIn(t *testing.T, dir, generation string, content []byte) {
	t.Helper()
	err := os.Mkdir(filepath.Join(dir, generation), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, generation, FileName), content, 0o600)
	}
	if err == nil {
		err = os.Symlink(generation, filepath.Join(dir, "next"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, swapLink))
	}
	if err == nil && generation == "0" {
		err = os.Symlink(filepath.Join(swapLink, FileName), filepath.Join(dir, FileName))
	}
	if err != nil {
		t.Fatal(err)
	}
}
