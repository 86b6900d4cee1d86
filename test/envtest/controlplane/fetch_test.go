package controlplane_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

const (
	scripts     = "hack/controlplane"
	archivePath = "/tools/envtest.tar.gz"
	programPath = "/bin/kube-controller-manager"
)

func TestTheProgramsAreDownloaded(t *testing.T) {
	m := newMachine(t)
	dir, messages, err := m.build(t.Context())
	if err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl", "kube-controller-manager"} {
		content, err := os.ReadFile(filepath.Join(dir, program)) //nolint:gosec // the test's own directory
		if err != nil || string(content) != program+" from the server" {
			t.Errorf("%s is %q, %v", program, content, err)
		}
	}
	if built := m.built(); built != "" {
		t.Errorf("built, too: %s", built)
	}
	again, _, err := m.build(t.Context())
	if err != nil || again != dir || m.requests.Load() != 2 {
		t.Errorf("another run printed %s, %v after %d requests, want %s and no third request", again, err, m.requests.Load(), dir)
	}
}

func TestWhatCannotBeDownloadedIsBuiltFromPinnedModules(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*machine)
		message string
		env     string
	}{
		"there is no network":         {change: func(m *machine) { m.server.Close() }, message: "cannot download"},
		"the server has no such file": {change: func(m *machine) { m.answer(http.NotFound) }, message: "404"},
		"the connection breaks":       {change: func(m *machine) { m.answer(breakOff) }, message: "cannot download"},
		"downloads are off":           {env: "IDALLOC_CONTROLPLANE_DOWNLOAD=off", message: "downloads are turned off"},
		"the platform has no download": {
			change:  func(m *machine) { m.pin("Plan9-mips sha256 0 https://idalloc.invalid/archive.tar.gz\n") },
			message: "no download is pinned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if test.change != nil {
				test.change(m)
			}
			dir, messages, err := m.build(t.Context(), test.env)
			if err != nil {
				t.Fatalf("%v: %s", err, messages)
			}
			if !strings.Contains(messages, test.message) || !strings.Contains(messages, "building the programs instead") {
				t.Errorf("it said: %s", messages)
			}
			version := pinnedVersion(t)
			for _, want := range []string{
				"gitVersion=" + version, "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager",
				"k8s.io/kubernetes/cmd/kubectl", "go.etcd.io/etcd/server/v3",
			} {
				if !strings.Contains(m.built(), want) {
					t.Errorf("no %s in what was built:\n%s", want, m.built())
				}
			}
			m.holdsOnly(filepath.Base(dir))
		})
	}
}

func TestAWrongChecksumIsRefused(t *testing.T) {
	m := newMachine(t)
	expected, found := strings.Repeat("ab", sha256.Size), sum256([]byte("kube-controller-manager from the server"))
	m.pin(strings.ReplaceAll(m.pinned(), found, expected))
	_, messages, err := m.build(t.Context())
	if err == nil {
		t.Error("the run succeeded")
	}
	for _, want := range []string{m.server.URL + programPath, expected, found, "IDALLOC_CONTROLPLANE_DOWNLOAD=off"} {
		if !strings.Contains(messages, want) {
			t.Errorf("no %s in: %s", want, messages)
		}
	}
	if built := m.built(); built != "" {
		t.Errorf("built instead: %s", built)
	}
	m.holdsOnly()
}

func TestDownloadsAreOfThePinnedMinorVersion(t *testing.T) {
	content := read(t, "downloads")
	minor := pinnedVersion(t)
	minor = minor[:strings.LastIndexByte(minor, '.')+1]
	line := regexp.MustCompile(`^Linux-(x86_64|aarch64) (sha512 [0-9a-f]{128}|sha256 [0-9a-f]{64}) https://\S+$`)
	versions := map[string]bool{}
	for l := range strings.Lines(content) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		if !line.MatchString(strings.TrimSpace(l)) {
			t.Errorf("not a pinned download: %s", l)
		}
		for _, version := range regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]+`).FindAllString(l, -1) {
			versions[version] = true
		}
	}
	if len(versions) != 1 {
		t.Errorf("downloads of versions %v, want one", versions)
	}
	for version := range versions {
		if !strings.HasPrefix(version, minor) {
			t.Errorf("downloads are of %s, go.mod pins %s*", version, minor)
		}
	}
}

// machine is a copy of the scripts with downloads and a cache of its own, a server for the downloads, and a Go tool that only
// writes down what it was called with.
type machine struct {
	t        *testing.T
	dir      string
	server   *httptest.Server
	answers  atomic.Pointer[http.HandlerFunc]
	requests atomic.Int32
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: without it nothing is downloaded")
	}
	m := &machine{t: t, dir: t.TempDir()}
	archive, program := tarball(t, "etcd", "kube-apiserver", "kubectl"), []byte("kube-controller-manager from the server")
	m.answer(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(map[string][]byte{archivePath: archive, programPath: program}[r.URL.Path])
	})
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Add(1)
		(*m.answers.Load())(w, r)
	}))
	t.Cleanup(m.server.Close)
	for _, file := range []string{"build", "fetch", "go.mod", "go.sum"} {
		m.write(file, read(t, file))
	}
	m.write("tools/go", "#!/bin/sh\necho \"$@\" >>"+m.path("built")+"\n"+
		`while [ "$1" != -o ]; do shift; done; echo built >"$2"; chmod +x "$2"`+"\n")
	platform, err := exec.CommandContext(t.Context(), "sh", "-c", "echo $(uname -s)-$(uname -m)").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := strings.TrimSpace(string(platform))
	m.pin(fmt.Sprintf("%s sha512 %x %s\n%s sha256 %s %s\n", p, sha512.Sum512(archive), m.server.URL+archivePath, p, sum256(program), m.server.URL+programPath))
	return m
}

// answer changes what the server does from the next request on.
func (m *machine) answer(handler http.HandlerFunc) { m.answers.Store(&handler) }

func (m *machine) path(elements ...string) string {
	return filepath.Join(append([]string{m.dir}, elements...)...)
}

func (m *machine) write(file, content string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(file)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(file), []byte(content), 0o700); err != nil { //nolint:gosec // scripts must be executable
		m.t.Fatal(err)
	}
}

func (m *machine) pin(downloads string) { m.write("downloads", downloads) }

func (m *machine) pinned() string {
	content, err := os.ReadFile(m.path("downloads"))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(content)
}

// build runs the script until it ends, and interrupts it as Ctrl-C does when ctx ends.
func (m *machine) build(ctx context.Context, env ...string) (dir, messages string, err error) {
	var out, progress bytes.Buffer
	cmd := exec.CommandContext(ctx, m.path("build")) //nolint:gosec // the project's own script
	cmd.Stdout, cmd.Stderr = &out, &progress
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.Env = append(os.Environ(), "PATH="+m.path("tools")+":"+os.Getenv("PATH"), "IDALLOC_CONTROLPLANE_DIR="+m.path("cache"),
		"KUBEBUILDER_ASSETS=", "IDALLOC_CONTROLPLANE_DOWNLOAD=", "IDALLOC_CONTROLPLANE_MIRROR=", "no_proxy=*")
	cmd.Env = append(cmd.Env, env...)
	err = cmd.Run()
	return strings.TrimSpace(out.String()), progress.String(), err
}

// built is what the Go tool was called with; empty if it was not.
func (m *machine) built() string {
	content, err := os.ReadFile(m.path("built"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return string(content)
}

// holdsOnly checks that the cache has these directories and nothing else but its lock.
func (m *machine) holdsOnly(names ...string) {
	m.t.Helper()
	entries, err := os.ReadDir(m.path("cache"))
	if err != nil {
		m.t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if entry.Name() != ".lock" {
			found = append(found, entry.Name())
		}
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		m.t.Errorf("the cache holds %v, want %v", found, names)
	}
	for _, name := range names {
		if parts, err := filepath.Glob(m.path("cache", name, ".*")); err != nil || len(parts) > 0 {
			m.t.Errorf("%v was left behind, %v", parts, err)
		}
	}
}

// breakOff promises more than it sends.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("the beginning"))
}

// tarball is laid out as envtest's archives are.
func tarball(t *testing.T, programs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, program := range programs {
		content := program + " from the server"
		header := &tar.Header{Name: path.Join("controller-tools/envtest", program), Mode: 0o755, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []interface{ Close() error }{archive, compressed} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func sum256(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// pinnedVersion is the Kubernetes version of the pinned modules.
func pinnedVersion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`k8s\.io/kubernetes (v[0-9.]+)`).FindStringSubmatch(read(t, "go.mod"))
	if found == nil {
		t.Fatal("go.mod pins no k8s.io/kubernetes")
	}
	return found[1]
}

// read returns a file of the scripts' folder.
func read(t *testing.T, file string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, scripts, file)) //nolint:gosec // the project's own file
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
