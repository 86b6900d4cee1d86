package pages_test

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var shell = regexp.MustCompile(`command: \[sh, -c, (?:'([^']*)'|"([^"]*)")\]`)

// The first process of a container ignores each signal that it does not handle. So each replacement of a pod would wait for the grace period.
func TestTheShellsOfExamplesHandleSIGTERM(t *testing.T) {
	texts, ran := pages(t), 0
	manifests, err := filepath.Glob(filepath.Join(root, "config", "examples", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range manifests {
		texts[path] = read(t, strings.TrimPrefix(path, root))
	}
	for path := range maps.Keys(texts) {
		for _, found := range shell.FindAllStringSubmatch(texts[path], -1) {
			ran++
			if signaled := ended(t, found[1]+found[2]); signaled {
				t.Errorf("%s: SIGTERM kills this shell, and as the first process of a container it ignores it: %s", path, found[0])
			}
		}
	}
	if ran < 2 {
		t.Errorf("%d shells were found", ran)
	}
}

// ended sends SIGTERM to a shell that has printed its first line, and reports whether that killed it.
func ended(t *testing.T, script string) (signaled bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script) //nolint:gosec // a command of a page
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "IDALLOC_ID=3", "IDALLOC_COUNT=5", "MACHINE_ID=3", "GROUP_INSTANCE_ID=orders-3", "IDALLOC_TOKEN=4711") // without a number they end
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // what the shell left behind
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state, err := cmd.Process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	status, is := state.Sys().(syscall.WaitStatus)
	return is && status.Signaled()
}
