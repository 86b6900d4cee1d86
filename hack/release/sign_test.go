package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newKey returns the file of a key of the test.
func newKey(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil { //nolint:gosec // a file of the test
		t.Fatalf("%v: %s", err, out)
	}
	return key
}

// permit lets a key sign releases of the project in a directory.
func permit(t *testing.T, root, key string) {
	t.Helper()
	public, err := os.ReadFile(key + ".pub") //nolint:gosec // a file of the test
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, signers), append([]byte(`release namespaces="idalloc-release" `), public...))
}

// checkTheCheck runs what SECURITY.md tells people to, on the release as it is and on others.
func checkTheCheck(t *testing.T, root string, release map[string][]byte) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md")) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Check a release\n")
	_, section, _ = strings.Cut(section, "```sh\n")
	commands, _, _ := strings.Cut(section, "```\n")
	const sums, file = "SHA256SUMS", "idalloc.yaml"
	another := append([]byte("#"), release[file]...)
	sum := func(content []byte) []byte { return fmt.Appendf(nil, "%x", sha256.Sum256(content)) }
	forged := bytes.Replace(release[sums], sum(release[file]), sum(another), 1)
	r := releaseOf(t, newKey(t))
	strangers, err := r.signature(t.Context(), forged)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		with   map[string][]byte
		reason string // empty if all is right
	}{
		{"as it was made", nil, ""},
		{"another file", map[string][]byte{file: another}, "idalloc.yaml: FAILED"},
		{"another file and its checksum", map[string][]byte{file: another, sums: forged}, "incorrect signature"},
		{"all that, signed by a stranger", map[string][]byte{file: another, sums: forged, sums + ".sig": strangers}, "Could not verify signature"},
	} {
		for _, name := range []string{file, sums, sums + ".sig"} {
			content, is := tc.with[name]
			if !is {
				content = release[name]
			}
			put(t, filepath.Join(root, "dist", name), content)
		}
		check := exec.CommandContext(t.Context(), "bash", "-ec", commands) //nolint:gosec // of the page
		check.Dir = root
		out, err := check.CombinedOutput()
		if (err == nil) != (tc.reason == "") || !strings.Contains(string(out), tc.reason) {
			t.Errorf("%s: %v\n%s", tc.name, err, out)
		}
	}
}

// releaseOf returns a release of nothing, which a key signs that is permitted.
func releaseOf(t *testing.T, key string) *release {
	t.Helper()
	r := &release{root: t.TempDir(), out: t.TempDir(), key: key}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(r.root, signers)), 0o700); err != nil {
		t.Fatal(err)
	}
	permit(t, r.root, key)
	return r
}

func TestAKeyThatIsNotInTheRepositorySignsNothing(t *testing.T) {
	r := release{root: "../..", out: t.TempDir(), key: newKey(t), version: version}
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "is not in "+signers) {
		t.Error(err)
	}
	if made, err := below(r.out); err != nil || len(made) > 0 {
		t.Errorf("%v: it made %d files", err, len(made))
	}
}
