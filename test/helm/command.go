package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// Values are values of a chart.
type Values = map[string]any

// Command is Helm's command, of the version that makes releases.
type Command struct {
	// Kubeconfig is the administrator's.
	Kubeconfig string
	// Home is where it keeps files of its own.
	Home string
}

// Run runs the command, with values unless they are nil, and returns what it prints. The word CHART is the chart's folder.
func (c Command) Run(ctx context.Context, values Values, args ...string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	program, err := program(ctx, root)
	if err != nil {
		return "", err
	}
	for i := range args {
		if args[i] == "CHART" {
			args[i] = filepath.Join(root, "charts", "idalloc")
		}
	}
	if values != nil {
		args = append(args, "--values=-")
	}
	input, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // arguments of the tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HELM_CACHE_HOME="+c.Home, "HELM_CONFIG_HOME="+c.Home, "HELM_DATA_HOME="+c.Home)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %v: %w: %s", args, err, &stderr)
	}
	return stdout.String(), nil
}

// program returns the path of Helm's command, which is built on first use.
func program(ctx context.Context, root string) (string, error) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile")) //nolint:gosec // the project's own
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`(?m)^HELM_COMMAND := (\S+)$`).FindSubmatch(makefile)
	if version == nil {
		return "", errors.New("the Makefile has no HELM_COMMAND")
	}
	tool := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool"), string(version[1])) //nolint:gosec // the project's own script
	tool.Stderr = os.Stderr
	path, err := tool.Output()
	return strings.TrimSpace(string(path)), err
}
