package e2e

import (
	"os/exec"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTheExamplesRenderAndAreRestricted(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Fatal("kubectl is not on PATH: use make test-unit, which takes the one that hack/controlplane/build makes")
	}
	for _, folder := range []string{
		"examples/files", "examples/sidecar", "examples/linked", "examples/partitions", "examples/failover", "examples/drain", "examples/run", "examples/env", "examples/strict",
		"examples/statefulset",
	} {
		t.Run(folder, func(t *testing.T) {
			m, err := render(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			if m.serviceAccount == nil || m.role == nil || m.binding == nil || m.deployment == nil {
				t.Fatal("the example is not complete")
			}
			if !slices.Equal(m.role.Rules[0].ResourceNames, []string{m.deployment.Name}) {
				t.Errorf("the role names %v, the Deployment is %s", m.role.Rules[0].ResourceNames, m.deployment.Name)
			}
			leases := slices.ContainsFunc(m.role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"leases"}) })
			if leases != slices.Contains([]string{"examples/strict", "examples/failover"}, folder) {
				t.Errorf("the role has Leases: %t", leases)
			}
			pod := m.deployment.Spec.Template.Spec
			if pod.ServiceAccountName != m.serviceAccount.Name || m.binding.Subjects[0].Name != m.serviceAccount.Name {
				t.Errorf("the pods run as %q", pod.ServiceAccountName)
			}
			if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("pod security context: %v", s)
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				checkContainer(t, c)
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
}
