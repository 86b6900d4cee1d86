package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// credentials match a user in a URL.
var credentials = regexp.MustCompile(`://[^/@]*@`)

func TestTheExamplesRenderAndAreRestricted(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Fatal("kubectl is not on PATH: use make test-unit, which takes the one that hack/controlplane/build makes")
	}
	for _, folder := range examples(t) {
		t.Run(folder, func(t *testing.T) {
			m, err := render(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			// Pods of the controller need no account.
			if account := m.serviceAccount != nil && m.role != nil && m.binding != nil; account == (folder == "examples/gated") || m.deployment == nil {
				t.Fatal("the example is not complete")
			} else if account {
				checkAccount(t, folder, m)
			}
			pod := m.deployment.Spec.Template.Spec
			if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("pod security context: %v", s)
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				checkContainer(t, c)
			}
			for _, v := range pod.Volumes {
				if v.EmptyDir != nil && v.EmptyDir.SizeLimit == nil {
					t.Errorf("the volume %s may fill the node's disk", v.Name)
				}
			}
		})
	}
	for _, folder := range []string{"base", "agent", "policy", "inject", "assign"} {
		t.Run(folder, func(t *testing.T) {
			if _, err := render(t.Context(), folder); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkAccount checks what the pods of an example may do: write their own Deployment, and Leases if they need these.
func checkAccount(t *testing.T, folder string, m *manifest) {
	t.Helper()
	if !slices.Equal(m.role.Rules[0].ResourceNames, []string{m.deployment.Name}) {
		t.Errorf("the role names %v, the Deployment is %s", m.role.Rules[0].ResourceNames, m.deployment.Name)
	}
	leases := slices.ContainsFunc(m.role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"leases"}) })
	if leases != slices.Contains([]string{"examples/strict", "examples/failover", "../examples/postgres"}, folder) {
		t.Errorf("the role has Leases: %t", leases)
	}
	if account := m.deployment.Spec.Template.Spec.ServiceAccountName; account != m.serviceAccount.Name || m.binding.Subjects[0].Name != m.serviceAccount.Name {
		t.Errorf("the pods run as %q", account)
	}
}

// Several examples fit one namespace, with the one of the autoscaler, and one kustomization.
func TestExamplesShareNoName(t *testing.T) {
	of, pods, selectors := map[string]string{}, map[string]labels.Set{}, map[string]labels.Selector{}
	for _, folder := range append(examples(t), "../autoscaler/config") {
		m, err := render(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range m.names {
			if other, taken := of[name]; taken {
				t.Errorf("%s is in %s and in %s", name, other, folder)
			}
			of[name] = folder
		}
		if selectors[folder], err = metav1.LabelSelectorAsSelector(m.deployment.Spec.Selector); err != nil {
			t.Fatal(err)
		}
		pods[folder] = m.deployment.Spec.Template.Labels
	}
	for folder, selector := range selectors {
		for other, pod := range pods {
			if (folder == other) != selector.Matches(pod) {
				t.Errorf("the selector of %s, %s, and pods of %s with %v", folder, selector, other, pod)
			}
		}
	}
	all := renderTogether(t, examples(t))
	for _, name := range all.names {
		if of[name] == "" {
			t.Errorf("in one kustomization with the others there is a %s", name)
		}
	}
}

// renderTogether renders folders as the resources of one kustomization.
func renderTogether(t *testing.T, folders []string) *manifest {
	t.Helper()
	config, err := filepath.Abs(filepath.Join("..", "..", "config"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("resources:\n")
	for _, folder := range folders {
		path, err := filepath.Rel(dir, filepath.Join(config, folder))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, "  -", path)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(config, dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := render(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// examples returns the folders of all examples with manifests, from config.
func examples(t *testing.T) (folders []string) {
	t.Helper()
	for _, pattern := range []string{"examples/*", "../examples/*"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "config", pattern, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folders = append(folders, filepath.Join(filepath.Dir(pattern), filepath.Base(filepath.Dir(file))))
		}
	}
	if len(folders) < 13 {
		t.Fatalf("only %v are examples", folders)
	}
	return folders
}

func checkContainer(t *testing.T, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: security context %v", c.Name, s)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("%s: resources %v", c.Name, c.Resources)
	}
	for _, e := range c.Env {
		if credentials.MatchString(e.Value) {
			t.Errorf("%s: the manifest has the credentials of %s: take them from a Secret", c.Name, e.Name)
		}
	}
	// Such a shell is process 1, and the kernel keeps signals from it for which it has no handler.
	if len(c.Command) == 3 && c.Command[0] == "sh" && !strings.Contains(c.Command[2], "trap 'exit 0' TERM") {
		t.Errorf("%s: the shell ignores SIGTERM, so each replacement waits for the whole grace period", c.Name)
	}
}
