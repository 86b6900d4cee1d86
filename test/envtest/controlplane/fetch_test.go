package controlplane_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

const (
	programPath = "/bin/kube-controller-manager"
	archivePath = "/tools/envtest.tar.gz"
)

func TestTheProgramsAreDownloaded(t *testing.T) {
	m := newMachine(t)
	dir, messages, err := m.build()
	if err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl", "kube-controller-manager"} {
		if content := read(t, dir, program); content != program+" from the server" {
			t.Errorf("%s is %q", program, content)
		}
	}
	if _, err := os.Stat(filepath.Join(m.dir, "built")); err == nil {
		t.Error("the Go tool was called, too")
	}
	m.server.Close()
	if again, messages, err := m.build(); err != nil || again != dir {
		t.Errorf("another run printed %s, want %s: %v: %s", again, dir, err, messages)
	}
}

func TestWhatCannotBeDownloadedIsBuiltFromPinnedModules(t *testing.T) {
	for name, test := range map[string]struct{ downloads, env, message string }{
		"the server has no such file":  {"%s sha256 0 %s/none\n", "", "404"},
		"downloads are off":            {"%s sha256 0 %s/none\n", "IDALLOC_CONTROLPLANE_DOWNLOAD=off", "downloads are turned off"},
		"the platform has no download": {"not-%s sha256 0 %s/none\n", "", "no download is pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write("downloads", fmt.Sprintf(test.downloads, m.platform, m.server.URL))
			_, messages, err := m.build(test.env)
			if err != nil {
				t.Fatalf("%v: %s", err, messages)
			}
			if !strings.Contains(messages, test.message) || !strings.Contains(messages, "building the programs instead") {
				t.Errorf("it said: %s", messages)
			}
			built := read(t, m.dir, "built")
			for _, want := range []string{
				"gitVersion=" + pinnedVersion(t), "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager",
				"k8s.io/kubernetes/cmd/kubectl", "go.etcd.io/etcd/server/v3",
			} {
				if !strings.Contains(built, want) {
					t.Errorf("no %s in what was built:\n%s", want, built)
				}
			}
		})
	}
}

func TestAWrongChecksumIsRefused(t *testing.T) {
	m := newMachine(t)
	expected, found := strings.Repeat("ab", sha256.Size), fmt.Sprintf("%x", sha256.Sum256([]byte("kube-controller-manager from the server")))
	m.write("downloads", strings.ReplaceAll(read(t, m.dir, "downloads"), found, expected))
	_, messages, err := m.build()
	if err == nil {
		t.Error("the run succeeded")
	}
	for _, want := range []string{m.server.URL + programPath, expected, found, "IDALLOC_CONTROLPLANE_DOWNLOAD=off"} {
		if !strings.Contains(messages, want) {
			t.Errorf("no %s in: %s", want, messages)
		}
	}
	if left, err := filepath.Glob(filepath.Join(m.dir, "cache", "[^.]*")); err != nil || len(left) > 0 {
		t.Errorf("%v was left behind, %v", left, err)
	}
}

func TestDownloadsAreOfThePinnedMinorVersion(t *testing.T) {
	minor := pinnedVersion(t)
	minor = minor[:strings.LastIndexByte(minor, '.')+1]
	line := regexp.MustCompile(`^(#.*|Linux-(x86_64|aarch64) (sha512 [0-9a-f]{128}|sha256 [0-9a-f]{64}) https://\S+)\n$`)
	for l := range strings.Lines(read(t, scripts(t), "downloads")) {
		if !line.MatchString(l) {
			t.Errorf("not a pinned download: %s", l)
		}
		if version := regexp.MustCompile(`https:.*(v[0-9]+\.[0-9]+\.[0-9]+)`).FindStringSubmatch(l); len(version) > 0 && !strings.HasPrefix(version[1], minor) {
			t.Errorf("%s: go.mod pins %s*", l, minor)
		}
	}
}

// machine is a copy of the scripts with downloads and a cache of its own, a server for the downloads, and a Go tool that only
// writes down what it was called with.
type machine struct {
	t             *testing.T
	dir, platform string
	server        *httptest.Server
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} { // laid out as envtest's archives are
		m.write("controller-tools/envtest/"+program, program+" from the server")
	}
	said := func(command string, args ...string) []byte {
		out, err := exec.CommandContext(t.Context(), command, args...).Output() //nolint:gosec // commands of the test
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	archive, program := said("tar", "-cz", "-C", m.dir, "controller-tools"), []byte("kube-controller-manager from the server")
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, known := map[string][]byte{archivePath: archive, programPath: program}[r.URL.Path]
		if !known {
			http.NotFound(w, r)
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(m.server.Close)
	for _, file := range []string{"build", "fetch", "go.mod", "go.sum"} {
		m.write(file, read(t, scripts(t), file))
	}
	m.write("tools/go", "#!/bin/sh\necho \"$@\" >>"+m.dir+"/built\n"+`while [ "$1" != -o ]; do shift; done; echo built >"$2"; chmod +x "$2"`+"\n")
	m.platform = strings.TrimSpace(string(said("sh", "-c", "echo $(uname -s)-$(uname -m)")))
	m.write("downloads", fmt.Sprintf("%s sha512 %x %s\n%s sha256 %x %s\n",
		m.platform, sha512.Sum512(archive), m.server.URL+archivePath, m.platform, sha256.Sum256(program), m.server.URL+programPath))
	return m
}

func (m *machine) write(file, content string) {
	m.t.Helper()
	path := filepath.Join(m.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // scripts must be executable
		m.t.Fatal(err)
	}
}

// build runs the script.
func (m *machine) build(env ...string) (dir, messages string, err error) {
	var out, progress bytes.Buffer
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.dir, "build")) //nolint:gosec // the project's own script
	cmd.Stdout, cmd.Stderr = &out, &progress
	cmd.Env = append(os.Environ(), "PATH="+m.dir+"/tools:"+os.Getenv("PATH"), "IDALLOC_CONTROLPLANE_DIR="+m.dir+"/cache",
		"KUBEBUILDER_ASSETS=", "IDALLOC_CONTROLPLANE_DOWNLOAD=", "IDALLOC_CONTROLPLANE_MIRROR=", "no_proxy=*")
	cmd.Env = append(cmd.Env, env...)
	err = cmd.Run()
	return strings.TrimSpace(out.String()), progress.String(), err
}

// pinnedVersion is the Kubernetes version of the pinned modules.
func pinnedVersion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`k8s\.io/kubernetes (v[0-9.]+)`).FindStringSubmatch(read(t, scripts(t), "go.mod"))
	if found == nil {
		t.Fatal("go.mod pins no k8s.io/kubernetes")
	}
	return found[1]
}

func scripts(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "hack", "controlplane")
}

func read(t *testing.T, dir, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // of the project or the test
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
