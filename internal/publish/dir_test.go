package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

func assigned(id, count int, token int64) identity.Identity {
	return identity.Identity{
		State: identity.StateAssigned, ID: id, Count: count, Token: token, Pod: "worker-1", Namespace: "shop",
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"},
	}
}

func without(state identity.State, count int) identity.Identity {
	return assigned(0, count, 0).Without(state)
}

func content(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...)) //nolint:gosec // a directory of the test
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// generations counts the generations on disk.
func generations(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, generationPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestAllFilesSayTheSameIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	must(t, New(dir).Publish(assigned(3, 5, 1753647547040015123)))
	want := map[string]string{
		"id": "3\n", "count": "5\n", "token": "1753647547040015123\n", "state": "assigned\n",
		"env": "IDALLOC_ID='3'\nIDALLOC_COUNT='5'\nIDALLOC_TOKEN='1753647547040015123'\nIDALLOC_STATE='assigned'\n",
		"identity.json": `{"state":"assigned","id":3,"count":5,"token":1753647547040015123,"tokenText":"1753647547040015123","pod":"worker-1","namespace":"shop",` +
			`"owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"}}` + "\n",
	}
	for name, data := range want {
		if got := content(t, dir, name); got != data {
			t.Errorf("%s is %q, want %q", name, got, data)
		}
	}
}

// The kubelet fails a container whose key the file lacks.
func TestTheFileHasTheKeysOfTheExample(t *testing.T) {
	var d appsv1.Deployment
	if err := yaml.Unmarshal([]byte(content(t, "../../config/examples/env/deployment.yaml")), &d); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must(t, New(dir).Publish(assigned(3, 5, 7)))
	file, env := content(t, dir, "env"), d.Spec.Template.Spec.Containers[0].Env
	variables := make([]string, 0, len(env))
	for _, e := range env {
		key := e.ValueFrom.FileKeyRef.Key
		variables = append(variables, e.Name+" from "+key)
		if !strings.Contains("\n"+file, "\n"+key+"='") {
			t.Errorf("%s reads %s, which the file lacks: %s", e.Name, key, file)
		}
	}
	slices.Sort(variables)
	if want := []string{"IDALLOC_COUNT from IDALLOC_COUNT", "IDALLOC_TOKEN from IDALLOC_TOKEN", "MACHINE_ID from IDALLOC_ID"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, not %q", variables, want)
	}
}

// sharing returns an identity that owns 0 to 11 and 40, and is to stop its work on 12.
func sharing() identity.Identity {
	id := assigned(3, 5, 7)
	id.Partitions = identity.PartitionsOf(64, []identity.Share{{Set: placement.Between(0, 12).Union(placement.Of(40)), Token: 7}}, placement.Of(12), 3)
	return id
}

func TestPartitionsInTheFiles(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	must(t, d.Publish(assigned(3, 5, 7)))
	if _, err := os.Lstat(filepath.Join(dir, "partitions")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that does not work on partitions has the file: %v", err)
	}
	nothing := sharing()
	nothing.Partitions = identity.PartitionsOf(64, nil, placement.Set{}, 3)
	for _, tc := range []struct {
		id        identity.Identity
		file, env string
	}{{sharing(), "0-11,40\n", "IDALLOC_PARTITIONS='0-11,40'\n"}, {nothing, "\n", "IDALLOC_PARTITIONS=''\n"}} {
		must(t, d.Publish(tc.id))
		if got := content(t, dir, "partitions"); got != tc.file {
			t.Errorf("partitions is %q, want %q", got, tc.file)
		}
		if got := content(t, dir, "env"); !strings.Contains(got, "\n"+tc.env) {
			t.Errorf("env is %q, which lacks %q", got, tc.env)
		}
		if got, err := identity.Read(dir); err != nil || got != tc.id {
			t.Errorf("read %+v, %v", got, err)
		}
	}
	for _, state := range []identity.State{identity.StateDraining, identity.StateFenced, identity.StateLost} {
		must(t, d.Publish(sharing()))
		must(t, d.Publish(sharing().Without(state)))
		if _, err := os.Open(filepath.Join(dir, "partitions")); !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // a directory of the test
			t.Errorf("%s: open partitions: %v, want ENOENT", state, err)
		}
		if got := content(t, dir, "env"); strings.Contains(got, "PARTITIONS") {
			t.Errorf("%s: env is %q", state, got)
		}
	}
}

func TestWithoutAnIDTheIDFileCannotBeOpened(t *testing.T) {
	for _, state := range []identity.State{identity.StatePending, identity.StateDraining, identity.StateLost, identity.StateReleased, identity.StateFenced} {
		t.Run(string(state), func(t *testing.T) {
			dir := t.TempDir()
			d := New(dir)
			must(t, d.Publish(assigned(3, 5, 7)))
			must(t, d.Publish(without(state, 5)))
			if _, err := os.Open(filepath.Join(dir, "id")); !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // a directory of the test
				t.Errorf("open id: %v, want ENOENT", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "id")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("test -e id: %v, want ENOENT", err)
			}
			if got := content(t, dir, "token"); got != "0\n" {
				t.Errorf("token is %q, want 0 while there is no id", got)
			}
			if got, want := content(t, dir, "env"), "IDALLOC_COUNT='5'\nIDALLOC_STATE='"+string(state)+"'\n"; got != want {
				t.Errorf("env is %q, want %q", got, want)
			}
			if got := content(t, dir, "identity.json"); !strings.Contains(got, `"id":null`) {
				t.Errorf("identity.json has an id: %s", got)
			}
			must(t, d.Publish(assigned(3, 5, 8)))
			if got := content(t, dir, "id"); got != "3\n" {
				t.Errorf("id is %q after it came back, want 3", got)
			}
		})
	}
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	dir := t.TempDir()
	must(t, New(dir).Publish(assigned(1, 5, 7)))
	before, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	again := New(dir) // a restarted container
	for range 3 {
		must(t, again.Publish(assigned(1, 5, 7)))
	}
	after, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil || after != before {
		t.Errorf("the files were swapped without a change: %s, %s, %v", before, after, err)
	}
}

func TestTheGenerationBeforeStaysReadableUntilTheNextSwap(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	must(t, d.Publish(assigned(1, 5, 7)))
	held, err := filepath.EvalSymlinks(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	must(t, d.Publish(assigned(2, 8, 9)))
	if got := content(t, held, "id") + content(t, held, "count"); got != "1\n5\n" {
		t.Errorf("a reader that resolved %s before the swap reads %q", dataLink, got)
	}
	must(t, d.Publish(assigned(3, 8, 10)))
	if _, err := os.Stat(held); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the generation before the last is still there: %v", err)
	}
	if n := generations(t, dir); n != 2 {
		t.Errorf("%d generations are kept, want 2", n)
	}
}

func TestLeftoversOfACrashedProcessAreRemoved(t *testing.T) {
	dir := t.TempDir()
	must(t, New(dir).Publish(assigned(1, 5, 7)))
	for _, name := range []string{generationPrefix + "half", generationPrefix + "older"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{swapPrefix + dataLink, swapPrefix + "id"} {
		must(t, os.Symlink("nowhere", filepath.Join(dir, name)))
	}
	must(t, os.Remove(filepath.Join(dir, "count")))
	d := New(dir)
	got, ok, err := d.Current()
	if err != nil || !ok || got != assigned(1, 5, 7) {
		t.Fatalf("Current is %v, %v, %v", got, ok, err)
	}
	must(t, d.Publish(assigned(1, 5, 7)))
	if n := generations(t, dir); n != 1 {
		t.Errorf("%d generations after a restart without a change, want 1", n)
	}
	must(t, d.Publish(assigned(1, 6, 7)))
	if n := generations(t, dir); n != 2 {
		t.Errorf("%d generations, want 2", n)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, swapPrefix+"*")); len(found) > 0 {
		t.Errorf("left over: %v", found)
	}
	if got := content(t, dir, "count"); got != "6\n" {
		t.Errorf("count is %q, want 6", got)
	}
}

func TestCurrentOfAnEmptyDirectoryIsNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, ok, err := New(dir).Current(); ok || err != nil {
			t.Errorf("Current of %s: %v, %v", dir, ok, err)
		}
	}
}

func TestOtherUsersCanReadWhateverTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, New(dir).Publish(assigned(1, 5, 7)))
	for path, want := range map[string]fs.FileMode{
		filepath.Dir(dir): 0o755, dir: 0o755, filepath.Join(dir, dataLink) + "/.": 0o755,
		filepath.Join(dir, "id"): 0o644, filepath.Join(dir, "identity.json"): 0o644, filepath.Join(dir, "env"): 0o644,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s is %o, want %o", path, got, want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	occupied := t.TempDir()
	must(t, os.WriteFile(filepath.Join(occupied, "id"), []byte("7\n"), 0o600))
	for name, c := range map[string]struct{ dir, want string }{
		"a file":            {file, "is not a directory: choose another one with --dir"},
		"a foreign file":    {occupied, "exists and is not a link made by idalloc: remove it"},
		"not a place to be": {"/proc/idalloc", "publishing to /proc/idalloc"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(c.dir).Publish(assigned(1, 5, 7))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS} {
		if err := New("/d").explain(fmt.Errorf("mkdir: %w", cause)); !strings.Contains(err.Error(), "mount an emptyDir volume there") || !errors.Is(err, cause) {
			t.Errorf("%v is explained as %v", cause, err)
		}
	}
	if err := New("/d").explain(syscall.ENOSPC); !strings.Contains(err.Error(), "sizeLimit") {
		t.Errorf("ENOSPC is explained as %v", err)
	}
}

// In each generation, id, count and token can be computed from each other. So a reader notices a mix of two generations.
func TestNoReaderSeesPartsOfTwoIdentities(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	publish := func(i int) {
		id := assigned(i%50, i%50+1000, int64(i%50+5000))
		if i%7 == 0 {
			id = without(identity.StatePending, i%50+1000)
		}
		must(t, d.Publish(id))
	}
	publish(1)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			whole := 0
			for {
				select {
				case <-done:
					if whole == 0 {
						t.Error("a reader never read a whole generation")
					}
					return
				default:
				}
				if id, err := identity.Read(dir); err != nil {
					t.Errorf("Read: %v", err)
				} else if id.Assigned() && id.Count != id.ID+1000 {
					t.Errorf("Read is torn: %+v", id)
				}
				ok, err := readWhole(dir)
				if err != nil {
					t.Error(err)
				}
				if ok {
					whole++
				}
			}
		})
	}
	for i := range 300 {
		publish(i)
	}
	close(done)
	readers.Wait()
}

// readWhole resolves dataLink once, as a careful reader does, and reads file by file. It returns false if the generation was
// removed meanwhile. That needs two swaps, and it removes all files at once.
func readWhole(dir string) (bool, error) {
	gen, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		return false, err
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, gen, name)) //nolint:gosec // a directory of the test
		if err != nil {
			return ""
		}
		return string(b)
	}
	state, id, count, token := read("state"), read("id"), read("count"), read("token")
	if _, err := os.Stat(filepath.Join(dir, gen)); err != nil {
		return false, nil //nolint:nilerr // removed: not torn, but too late
	}
	if state == "pending\n" {
		if id != "" || token != "0\n" {
			return false, fmt.Errorf("pending with id %q and token %q", id, token)
		}
		return true, nil
	}
	var i, n, e int
	if _, err := fmt.Sscan(id+count+token, &i, &n, &e); err != nil {
		return false, fmt.Errorf("a generation reads %q %q %q: %w", id, count, token, err)
	}
	if n != i+1000 || e != i+5000 {
		return false, fmt.Errorf("torn: id %d, count %d, token %d", i, n, e)
	}
	return true, nil
}
