package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A process that is started again leaves the files as they are if they say what they should, and only then.
func TestFilesThatWereChangedAreWrittenAgain(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"another id": func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(dir, dataLink, fileID), []byte("4\n"), 0o600))
		},
		"no id": func(t *testing.T, dir string) { t.Helper(); must(t, os.Remove(filepath.Join(dir, dataLink, fileID))) },
		"no files": func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Remove(filepath.Join(dir, dataLink)))
		},
		"a file for the link": func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, dataLink)
			must(t, os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
		"a link elsewhere": func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, fileID)
			must(t, os.Remove(path), os.Symlink("/dev/null", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, New(dir).Publish(assigned(3, 5, 7)))
			damage(t, dir)
			must(t, New(dir).Publish(assigned(3, 5, 7)))
			if got := content(t, dir, fileID) + content(t, dir, fileCount); got != "3\n5\n" {
				t.Errorf("the files say %q", got)
			}
		})
	}
}

func TestAnIDOfAnotherProgramIsRemoved(t *testing.T) {
	dir := t.TempDir()
	must(t, New(dir).Publish(without(identity.StatePending, 5)))
	must(t, os.WriteFile(filepath.Join(dir, dataLink, fileID), []byte("3\n"), 0o600))
	must(t, New(dir).Publish(without(identity.StatePending, 5)))
	if _, err := os.Stat(filepath.Join(dir, fileID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no id is held, and the file is there: %v", err)
	}
}

// The caller may try again.
func TestAfterAnErrorTheFilesShowWhatTheyShowed(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	must(t, d.Publish(assigned(3, 5, 7)))
	inTheWay := filepath.Join(dir, swapPrefix+dataLink)
	must(t, os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700))
	for range 2 {
		if err := d.Publish(assigned(4, 5, 8)); err == nil || !strings.Contains(err.Error(), "publishing to "+dir) {
			t.Errorf("error is %v", err)
		}
	}
	if got := content(t, dir, fileID); got != "3\n" {
		t.Errorf("the files say %q", got)
	}
	if n := generations(t, dir); n != 1 {
		t.Errorf("%d generations are left", n)
	}
	must(t, os.RemoveAll(inTheWay))
	must(t, d.Publish(assigned(4, 5, 8)))
	if got := content(t, dir, fileID); got != "4\n" {
		t.Errorf("the files say %q", got)
	}
}

// A hidden file that cannot be read is not the same as none: the process would act as if it were the first.
func TestAHiddenFileThatCannotBeReadIsAnError(t *testing.T) {
	for name, read := range map[string]func(*Dir) error{
		SecretName: func(d *Dir) error { _, err := d.Secret(); return err },
		stopName:   func(d *Dir) error { _, err := d.LastStop(); return err },
		lastName:   func(d *Dir) error { _, err := d.Noted(); return err },
		fileJSON:   func(d *Dir) error { _, _, err := d.Current(); return err },
	} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		if err := read(New(dir)); err == nil {
			t.Errorf("%s is a directory, and that is no error", name)
		}
	}
}

func TestANoteThatCannotBeRemovedIsAnError(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, lastName, "full"), 0o700))
	if err := New(dir).Note(without(identity.StateReleased, 5)); err == nil || !strings.Contains(err.Error(), "the withdrawn id cannot be kept") {
		t.Errorf("error is %v", err)
	}
}

// An emptyDir is for all users of the pod.
func TestTheModeOfADirectoryThatIsThereIsKept(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777)) //nolint:gosec // as an emptyDir has it
	must(t, New(filepath.Join(dir, "ids")).Publish(assigned(3, 5, 7)))
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

func TestWhatCannotBeClearedIsToldAndClearedTheNextTime(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	must(t, d.Publish(assigned(1, 5, 7)))
	oldest, err := os.Readlink(filepath.Join(dir, dataLink))
	must(t, err)
	must(t, d.Publish(assigned(2, 5, 8)))
	must(t, os.MkdirAll(filepath.Join(dir, swapPrefix+oldest, "full"), 0o700))
	if err := d.Publish(assigned(3, 5, 9)); err == nil {
		t.Error("a generation was left, and that is no error")
	}
	for before, id := range []int{3, 4} {
		must(t, d.Publish(assigned(id, 5, 9)))
		if got := content(t, dir, fileID); got != strconv.Itoa(id)+"\n" {
			t.Errorf("the files say %q", got)
		}
		if left, err := filepath.Glob(filepath.Join(dir, swapPrefix+"*")); err != nil || len(left) > 0 || generations(t, dir) != before+1 {
			t.Errorf("left over: %v, %v, and %d generations", left, err, generations(t, dir))
		}
	}
}

// The server would demand a secret that no program can read.
func TestASecretThatCannotBeSavedIsAnError(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, swapPrefix+SecretName, "full"), 0o700))
	if secret, err := New(dir).Secret(); err == nil || secret != "" {
		t.Errorf("the secret is %q, %v", secret, err)
	}
}

// Another container of the pod may write in the directory, and would have idalloc write, read or remove what that container may not.
func TestALinkInTheDirectoryLeadsNowhereElse(t *testing.T) {
	const long = "a text that is long enough for a secret\n"
	for link, use := range map[string]func(d *Dir) (string, error){
		swapPrefix + SecretName: (*Dir).Secret,
		SecretName:              (*Dir).Secret,
		swapPrefix + stopName:   func(d *Dir) (string, error) { return "", d.SetLastStop(3) },
		swapPrefix + podName:    func(d *Dir) (string, error) { return "", d.SetPod("uid-1") },
		podName:                 func(d *Dir) (string, error) { return d.Pod(), nil },
		swapPrefix + lastName:   func(d *Dir) (string, error) { return "", d.Note(assigned(3, 5, 7)) },
		swapPrefix + pausedName: func(d *Dir) (string, error) { return "", d.SetPaused(true) },
		fileJSON:                func(d *Dir) (string, error) { id, _, err := d.Current(); return id.Pod, err },
	} {
		dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
		must(t, os.WriteFile(outside, []byte(long), 0o600), os.Symlink(outside, filepath.Join(dir, link)))
		got, err := use(New(dir))
		if strings.TrimSpace(got) == strings.TrimSpace(long) || content(t, outside) != long {
			t.Errorf("%s: it read %q, %v; the file outside has %q", link, got, err, content(t, outside))
		}
		if err != nil && strings.Contains(err.Error(), "invalid character") {
			t.Errorf("%s: the file outside was read: %v", link, err)
		}
	}
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), []byte(long), 0o600), os.Symlink(outside, filepath.Join(dir, dataLink)))
	must(t, New(dir).Publish(assigned(3, 5, 7)))
	if content(t, outside, "kept") != long || content(t, dir, fileID) != "3\n" {
		t.Error("a link to a directory was followed")
	}
}
