package publish

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAMemoryIsForTheNextProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	if b, err := New(dir).Memory().Load(); b != nil || err != nil {
		t.Errorf("an empty directory has %q, %v", b, err)
	}
	for _, want := range []string{"a", "bc", ""} {
		d := New(dir)
		if err := d.Memory().Save([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if err := d.Publish(assigned(3, 5, 7)); err != nil {
			t.Fatal(err)
		}
		if b, err := d.Memory().Load(); string(b) != want || err != nil {
			t.Errorf("loaded %q, %v; want %q", b, err, want)
		}
	}
	shown, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
	if err != nil || len(shown) != len(names(assigned(3, 5, 7))) {
		t.Errorf("the directory shows %v, %v", shown, err)
	}
}

func TestAMemoryThatCannotBeWrittenSaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(file).Memory().Save(nil); err == nil {
		t.Error("saved in a file that is no directory")
	}
}
