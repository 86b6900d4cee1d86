package policy

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

var _ = Describe("an autoscaler", Ordered, func() {
	const target = `{"metadata":{"annotations":{"idalloc.dev/partition-target":%s}}}`
	var (
		s   *scene
		pod corev1.Pod
		a   actor
	)
	scale := rbacv1.PolicyRule{APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, Verbs: []string{"scale"}}
	scales := merges(deployments, theDeployment, `{"spec":{"replicas":7}}`, "scale")
	patches := func(patch string) request { return merges(deployments, theDeployment, patch) }
	BeforeAll(func(ctx SpecContext) {
		s = newScene(ctx)
		pod, a = s.account(ctx, "autoscaler", append(wide(), scale)...)
	})

	It("may write the target and the scale of its workload", func(ctx SpecContext) {
		Expect(patches(fmt.Sprintf(target, `"0=0"`))(ctx, a)).To(Succeed())
		Expect(patches(fmt.Sprintf(target, `null`))(ctx, a)).To(Succeed())
		Expect(scales(ctx, a)).To(Succeed())
	})

	It("may write nothing else", func(ctx SpecContext) {
		for patch, say := range map[string]string{
			`{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`:                             "the verb scale permits to change annotation idalloc.dev/partition-target",
			`{"metadata":{"annotations":{"idalloc.dev/partition-count":"1"}}}`:                        "idalloc annotations, and not idalloc.dev/partition-count of",
			`{"metadata":{"annotations":{"example.com/new":"1"}}}`:                                    "idalloc annotations, and not example.com/new of",
			`{"metadata":{"labels":{"example.com/new":"1"}}}`:                                         "label example.com/new of",
			`{"metadata":{"annotations":{"idalloc.dev/partition-target":""}},"spec":{"paused":true}}`: "may not change the spec of",
		} {
			s.refused(ctx, a, patches(patch), say)
		}
		s.refused(ctx, a, says(pod, "Deployment/deployment", "deployment.deployment"), "the verb allocate permits to change the other keys of idalloc")
		s.refused(ctx, a, carries(pod, "", "deployment.deployment"), "the receipt of pods autoscaler")
		s.refused(ctx, a, merges(deployments, theDeployment, fmt.Sprintf(target, `"0=0"`), "status"), "UPDATE of deployments/status deployment")
		s.refused(ctx, a, removes(deployments, theDeployment), "DELETE of deployments deployment")
	})

	It("may write nothing with a token that names no pod", func(ctx SpecContext) {
		without := withoutPod(ctx, s.ns.Name, "autoscaler")
		s.refused(ctx, without, patches(fmt.Sprintf(target, `"0=0"`)), "names no pod")
		s.refused(ctx, without, scales, "names no pod", "deployments/scale deployment")
	})

	It("may not scale if its Role permits to scale all workloads", func(ctx SpecContext) {
		_, a := s.account(ctx, "scales-all", scale, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{patchVerb}})
		s.refused(ctx, a, scales, "permits it to write all deployments/scale of the namespace")
	})

	It("may not scale without the mark, and with both marks may do what each permits", func(ctx SpecContext) {
		s.refused(ctx, s.marked, scales, "UPDATE of deployments/scale deployment")
		pod, both := s.account(ctx, "both", append(wide(), mark(), scale)...)
		Expect(scales(ctx, both)).To(Succeed())
		Expect(patches(fmt.Sprintf(target, `"0=0"`))(ctx, both)).To(Succeed())
		Expect(says(pod, "Deployment/deployment", "deployment.deployment")(ctx, both)).To(Succeed())
	})

	It("may write the Lease that its Role names, and no other and no large one", func(ctx SpecContext) {
		const name = "idalloc-autoscaler-deployment.deployment"
		own := rbacv1.PolicyRule{APIGroups: []string{slotlease.Resource.Group}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", updateVerb}}
		_, leads := s.account(ctx, "leads", scale, leases("create"), own)
		lease := func(by ...func(*unstructured.Unstructured)) request {
			o := other()
			changes(append(by, named(name))).all(o)
			return creates(o)
		}
		Expect(lease()(ctx, leads)).To(Succeed())
		s.refused(ctx, leads, lease(annotate(strings.Repeat("x", 72<<10))), "at most 73728")
		s.refused(ctx, leads, creates(other()), "may only write Leases of its own workload and those that its Role permits to update by resourceNames")
		s.refused(ctx, a, creates(other()), "that may update all Leases of the namespace")
	})
})
