package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

const (
	controllerCommand = "./controller/cmd/idalloc-controller"
	controllerImage   = "ghcr.io/idalloc/idalloc-controller"
)

// overlay is what the process node needs of config/controller: one pod, because all share one network, and no variable that it does not know.
const overlay = `resources:
  - %[1]s/controller
  - %[1]s/policy
  - %[1]s/assign
patches:
  - target: {kind: Deployment, name: idalloc-controller}
    patch: |
      - {op: replace, path: /spec/replicas, value: 1}
      - {op: replace, path: /spec/template/spec/containers/0/env, value: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}
      - {op: add, path: /spec/template/spec/containers/0/args, value: [
          --leader-election=false, --metrics-address=0, "--health-address=$(POD_IP):8081"]}
`

// installController applies what config has of the controller, and returns when its pod is Ready and the policies are in force.
func (s *Suite) installController(ctx context.Context) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "install")
	config, err := filepath.Rel(dir, filepath.Join(root, "config"))
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, config), 0o600),
	); err != nil {
		return err
	}
	if _, err := s.Kubectl(ctx, "apply", "-k", dir); err != nil {
		return err
	}
	_, err = s.Kubectl(ctx, "rollout", "status", "-n", "idalloc-system", "deployment/idalloc-controller", "--timeout=60s")
	return err
}

// Kubectl runs kubectl as the admin, and returns what it prints.
func (s *Suite) Kubectl(ctx context.Context, args ...string) (string, error) {
	kubeconfig, err := s.ControlPlane.Kubeconfig(controlplane.Admin)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.ControlPlane.Assets(), "kubectl"), args...) //nolint:gosec // the tests' own commands
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", args[0], err, stderr.String())
	}
	return string(out), nil
}
