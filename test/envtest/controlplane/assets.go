package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
)

// module is the first line of the go.mod that marks the root of the project.
const module = "module github.com/idalloc/idalloc\n"

// Assets returns a directory that holds etcd, kube-apiserver and
// kube-controller-manager: the one in KUBEBUILDER_ASSETS if it has all three,
// else the one that hack/controlplane/build fills. The first time on a machine
// that takes about a minute where it can download the programs, and about ten
// minutes where it has to build them; its progress goes to standard error.
func Assets(ctx context.Context, log logr.Logger) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" && complete(dir) {
		return dir, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	script := filepath.Join(root, "hack", "controlplane", "build")
	log.V(1).Info("looking for the control plane's programs", "script", script)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, script) //nolint:gosec // the project's own script
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	dir := strings.TrimSpace(out.String())
	if !complete(dir) {
		return "", fmt.Errorf("%s printed %q, which does not hold the programs", script, dir)
	}
	return dir, nil
}

func complete(dir string) bool {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		info, err := os.Stat(filepath.Join(dir, name)) //nolint:gosec // the user's own directory
		if err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// ModuleRoot returns the directory of the project's go.mod: the nearest one
// above the working directory, or above this source file when the working
// directory is elsewhere.
func ModuleRoot() (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			content, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // the name is fixed
			if err == nil && bytes.HasPrefix(content, []byte(module)) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no go.mod of the project above %s", strings.Join(starts, " or "))
}
