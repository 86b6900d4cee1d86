//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/overlap"
)

// stripper is a policy that removes idalloc's keys from what is updated in one namespace: its name, the namespace, the API group and the resource.
const stripper = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: %[1]q
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: %[2]q}
    resourceRules:
      - {apiGroups: [%[3]q], apiVersions: [v1], operations: [UPDATE], resources: [%[4]q]}
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
          object.metadata.?annotations.orValue({}).filter(k, k.startsWith('idalloc.dev/'))
          .map(k, JSONPatch{op: 'remove', path: '/metadata/annotations/' + jsonpatch.escapeKey(k)})
          + object.metadata.?labels.orValue({}).filter(k, k.startsWith('idalloc.dev/'))
          .map(k, JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey(k)})
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: %[1]q
spec:
  policyName: %[1]q
`

var _ = Describe("A policy of the cluster that removes idalloc's keys", func() {
	It("from pods keeps each pod from working until it is gone, and pods and verify say so", func(ctx SpecContext) {
		w := prepare(ctx, run, 2)
		w.apply(ctx)
		before := w.held(ctx, 2)
		mend := w.strip(ctx, "", "pods", before[0])

		By("touching the pods, whose keys go with that")
		Expect(w.kubectl(ctx, "annotate", "pods", "--all", "example.com/touched=yes")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			for _, pod := range before {
				last, err := w.lastSample(pod)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(last.ID).To(Equal(overlap.None), pod)
			}
		}).WithContext(ctx).Should(Succeed())
		since := overlap.Now()
		Expect(w.kubectl(ctx, "delete", "pod", before[1])).Error().NotTo(HaveOccurred())

		By("waiting until people can see it")
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(2))
			for _, p := range pods {
				g.Expect(w.kubectl(ctx, "describe", "pod", p.Name)).To(MatchRegexp(`Warning\s+WaitingForSlot\s.*came back changed: idalloc\.dev/receipt`))
			}
			code, said := w.verdict(ctx, "Deployment/"+name)
			g.Expect(code).To(Equal(1), said)
			g.Expect(said).To(ContainSubstring("whether an admission webhook or policy removes its receipt"))
		}).WithContext(ctx).Should(Succeed())
		for _, r := range w.records(since) {
			Expect(r.ID).To(Equal(overlap.None), "it worked without a lock: %s", r)
		}

		By("removing the policy")
		mend(ctx)
		w.held(ctx, 2)
	}, SpecTimeout(3*patience))

	It("from the workload leaves pods with an id at work, and a new pod waits until it is gone, and says why", func(ctx SpecContext) {
		w := prepare(ctx, run, 2)
		w.apply(ctx)
		before := w.held(ctx, 2)
		mend := w.strip(ctx, "apps", "deployments", name)
		since := overlap.Now()
		Expect(w.kubectl(ctx, "delete", "pod", before[1])).Error().NotTo(HaveOccurred())

		By("waiting until people can see it")
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(2))
			waiting := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name != before[0] })].Name
			g.Expect(w.kubectl(ctx, "describe", "pod", waiting)).To(MatchRegexp(`Warning\s+WaitingForSlot\s.*came back changed: idalloc\.dev/assignment`))
			code, said := w.verdict(ctx, "Deployment/"+name)
			g.Expect(code).To(Equal(1), said)
			g.Expect(said).To(ContainSubstring(waiting))
		}).WithContext(ctx).Should(Succeed())
		for _, r := range w.records(since) {
			Expect(r.ID == 1 && r.Pod != before[1]).To(BeFalse(), "it worked without an assignment: %s", r)
		}

		By("removing the policy")
		mend(ctx)
		Expect(w.held(ctx, 2)).To(HaveKeyWithValue(0, before[0]))
		w.expectUninterrupted(holders{0: before[0]}, since)
	}, SpecTimeout(3*patience))
})

// strip installs the policy for a resource of the namespace until the spec ends or mend is called. object is one that there is.
func (w *workload) strip(ctx context.Context, group, resource, object string) (mend func(context.Context)) {
	GinkgoHelper()
	policy := fmt.Sprintf(stripper, w.namespace+"-stripper", w.namespace, group, resource)
	mend = func(ctx context.Context) {
		Expect(w.kubectlIn(ctx, policy, "delete", "--ignore-not-found", "-f", "-")).Error().NotTo(HaveOccurred())
	}
	DeferCleanup(mend, NodeTimeout(patience))
	Expect(w.kubectlIn(ctx, policy, "apply", "-f", "-")).Error().NotTo(HaveOccurred())
	const keys = `go-template={{range $k, $v := .metadata.annotations}}{{$k}} {{end}}{{range $k, $v := .metadata.labels}}{{$k}} {{end}}`
	Eventually(func(ctx context.Context) (string, error) {
		return w.kubectl(ctx, "annotate", resource, object, "example.com/probe=yes", "--dry-run=server", "-o", keys)
	}).WithContext(ctx).Should(And(ContainSubstring("example.com/probe"), Not(ContainSubstring("idalloc.dev/"))))
	return mend
}

var _ = Describe("A pod with two containers that run idalloc", func() {
	It("is refused by the injection, and without it has one at work, while the other one says why it ends", func(ctx SpecContext) {
		const sentence = "would act under one id"
		w := prepare(ctx, run, 1, twice)
		template := &w.manifest.deployment.Spec.Template
		injectByPolicy(ctx, w.namespace)
		template.Labels[injectLabel] = "true"
		w.apply(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			d, err := w.deployment(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", appsv1.DeploymentReplicaFailure),
				HaveField("Message", And(ContainSubstring("container "+name+" runs idalloc itself"), ContainSubstring(sentence))))))
		}).WithContext(ctx).Should(Succeed())

		By("not asking for the injection")
		delete(template.Labels, injectLabel)
		w.apply(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].Labels).To(HaveKeyWithValue(idLabel, "0"))
			statuses := pods[0].Status.ContainerStatuses
			refused := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return ended(s).ExitCode == 1 })
			g.Expect(refused).NotTo(Equal(-1))
			g.Expect(ended(statuses[refused]).Message).To(And(ContainSubstring("another process of pod "+pods[0].Name), ContainSubstring(sentence)))
			g.Expect(statuses[1-refused].State.Running).NotTo(BeNil())
			g.Expect(statuses[1-refused].RestartCount).To(BeZero())
			last, err := w.lastSample(pods[0].Name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(last.ID).To(BeZero())
		}).WithContext(ctx).Should(Succeed())

		By("taking the second container out")
		template.Spec.Containers = template.Spec.Containers[:1]
		w.apply(ctx)
		w.held(ctx, 1)
	}, SpecTimeout(3*patience))
})

// twice adds a second container that runs the same.
func twice(s *appsv1.DeploymentSpec) {
	pod := &s.Template.Spec
	second := pod.Containers[0].DeepCopy()
	second.Name, second.Ports, second.ReadinessProbe, second.LivenessProbe = "second", nil, nil, nil
	pod.Containers = append(pod.Containers, *second)
}
