//go:build e2e

package e2e

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// exitForbidden is part of the contract of the command.
const exitForbidden = 4

var _ = Describe("A missing permission", func() {
	DescribeTable("ends idalloc init with exit code 4 and is named in its log", func(ctx SpecContext, verb, resource string) {
		w := newWorkload(ctx, files)
		w.manifest.deployment.Spec.Replicas = new(int32(1))
		w.forbid(verb, resource)
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				w.dump(ctx)
			}
		})
		w.apply(ctx)
		var pod corev1.Pod
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(1))
			pod = pods[0]
			g.Expect(pod.Status.InitContainerStatuses).NotTo(BeEmpty())
			g.Expect(ended(pod.Status.InitContainerStatuses[0]).ExitCode).To(BeEquivalentTo(exitForbidden))
		}).WithContext(ctx).Should(Succeed())
		Expect(ended(pod.Status.InitContainerStatuses[0]).Message).To(And(ContainSubstring("idalloc: forbidden: cannot "+verb), ContainSubstring(resource)), "what kubectl describe shows")
		// The container is restarted, and between two starts its log may be empty or away for a moment.
		Eventually(func(ctx context.Context) (string, error) {
			return w.kubectl(ctx, "logs", pod.Name, "-c", "idalloc-init")
		}).WithContext(ctx).Should(And(ContainSubstring(verb), ContainSubstring(resource)))
	},
		func(verb, resource string) string { return verb + " " + resource },
		Entry(nil, "patch", "deployments", SpecTimeout(patience)),
		Entry(nil, "get", "replicasets", SpecTimeout(patience)),
		Entry(nil, "get", "pods", SpecTimeout(patience)),
		Entry(nil, "list", "pods", SpecTimeout(patience)),
		Entry(nil, Label(mainFlow), "patch", "pods", SpecTimeout(patience)),
	)
})

// forbid takes one verb out of the role, and the rule if that was its only one.
func (w *workload) forbid(verb, resource string) {
	role := w.manifest.role
	for i := range role.Rules {
		if rule := &role.Rules[i]; slices.Contains(rule.Resources, resource) {
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
}

// ended returns the newest end of a container, with exit code -1 if it did not end yet.
func ended(s corev1.ContainerStatus) corev1.ContainerStateTerminated {
	for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
		if state.Terminated != nil {
			return *state.Terminated
		}
	}
	return corev1.ContainerStateTerminated{ExitCode: -1}
}
