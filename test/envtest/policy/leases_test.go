package policy

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// changes are what a spec does with a Lease before it is sent.
type changes []func(*unstructured.Unstructured)

func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		Expect(unstructured.SetNestedField(o.Object, value, path...)).To(Succeed())
	}
}

func annotate(text string) func(*unstructured.Unstructured) {
	return set(text, "metadata", "annotations", receipt.Key)
}

func named(name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetName(name) }
}

// cleared leaves a Lease to no pod, as idalloc does.
func cleared(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "spec", "holderIdentity")
	unstructured.RemoveNestedField(o.Object, "spec", "renewTime")
	o.SetAnnotations(nil)
}

// lease is the Lease of the Deployment's slot 3 as idalloc in this pod writes it.
func (s *scene) lease(pod corev1.Pod, by ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	const owner = "Deployment/deployment"
	text := receipt.Receipt{UID: string(pod.UID), Owner: owner, State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: receipt.Draw(), Strict: true}.Encode()
	o := &unstructured.Unstructured{Object: object("coordination.k8s.io/v1", "Lease", slotlease.Name(owner, 3), map[string]any{
		"holderIdentity": pod.Name + "/" + string(pod.UID), "leaseDurationSeconds": int64(40), "renewTime": "2026-01-02T03:04:05.000000Z",
	})}
	o.SetLabels(map[string]string{receipt.OwnerLabel: "deployment.deployment", receipt.IDLabel: "3"})
	o.SetAnnotations(map[string]string{receipt.Key: text})
	for _, change := range by {
		change(o)
	}
	return o
}

// of has the receipt name another workload.
func of(owner string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		annotate(strings.Replace(o.GetAnnotations()[receipt.Key], "Deployment/deployment", owner, 1))(o)
	}
}

// owned has the garbage collector delete the Lease with the Deployment.
func owned(uid types.UID) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: theDeployment, UID: uid}})
	}
}

// creates sends a Lease that does not exist.
func creates(o *unstructured.Unstructured) request {
	return func(ctx context.Context, a actor) error { return a.create(ctx, slotlease.Resource, o.Object) }
}

// replaces sends one in place of that which exists.
func replaces(o *unstructured.Unstructured) request {
	return func(ctx context.Context, a actor) error {
		return a.replace(ctx, slotlease.Resource, o.GetName(), func(existing *unstructured.Unstructured) {
			version := existing.GetResourceVersion()
			existing.Object = o.DeepCopy().Object
			existing.SetResourceVersion(version)
		})
	}
}

// deletes removes one.
func deletes(o *unstructured.Unstructured) request {
	return removes(slotlease.Resource, o.GetName())
}

var _ = Describe("a marked account, on Leases,", Ordered, func() {
	var s *scene
	BeforeAll(func(ctx SpecContext) {
		s = newScene(ctx)
		Eventually(func() error { return creates(s.lease(s.another))(ctx, s.marked) }).WithContext(ctx).Should(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-leases'")))
	})

	// stored has an administrator write a Lease, which is there until the end of the spec.
	stored := func(ctx context.Context, o *unstructured.Unstructured) {
		GinkgoHelper()
		client := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(slotlease.Resource).Namespace(s.ns.Name)
		_, err := client.Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.Delete(ctx, o.GetName(), metav1.DeleteOptions{})).To(Succeed())
		}, NodeTimeout(patience))
	}

	It("may create one for its own pod, renew it and clear it", func(ctx SpecContext) {
		Expect(creates(s.lease(s.own, cleared))(ctx, s.marked)).To(Succeed(), "a free one, so that no earlier write of it arrives any more")
		Expect(creates(s.lease(s.own))(ctx, s.marked)).To(Succeed())
		stored(ctx, s.lease(s.own))
		Expect(replaces(s.lease(s.own))(ctx, s.marked)).To(Succeed())
		Expect(replaces(s.lease(s.own, cleared))(ctx, s.marked)).To(Succeed())
	})

	It("may take one that no pod has, and that of another pod, but clear and renew only its own", func(ctx SpecContext) {
		stored(ctx, s.lease(s.another))
		Expect(replaces(s.lease(s.own))(ctx, s.marked)).To(Succeed(), "its time may be over")
		s.refused(ctx, s.marked, replaces(s.lease(s.another, cleared)), "which "+s.another.Name+"/"+string(s.another.UID)+" holds", "use the token of the pod itself")
		s.refused(ctx, s.marked, replaces(s.lease(s.another)), "the token is that of pod "+s.own.Name+"/"+string(s.own.UID))
		Expect(replaces(s.lease(s.another))(ctx, s.copied)).To(Succeed(), "the other pod's token")

		free := changes{named("idalloc-deployment.deployment-4"), set("4", "metadata", "labels", receipt.IDLabel), cleared}.all
		four := func(o *unstructured.Unstructured) {
			named("idalloc-deployment.deployment-4")(o)
			set("4", "metadata", "labels", receipt.IDLabel)(o)
			annotate(strings.Replace(o.GetAnnotations()[receipt.Key], `"id":3`, `"id":4`, 1))(o)
		}
		stored(ctx, s.lease(s.own, free))
		Expect(replaces(s.lease(s.own, free))(ctx, s.marked)).To(Succeed(), "so no earlier write of it arrives any more")
		Expect(replaces(s.lease(s.own, four))(ctx, s.marked)).To(Succeed())
	})

	It("takes ownerReferences off that another client set", func(ctx SpecContext) {
		stored(ctx, s.lease(s.own, owned(s.uid)))
		Expect(replaces(s.lease(s.own))(ctx, s.marked)).To(Succeed())
		s.refused(ctx, s.marked, replaces(s.lease(s.own, owned(s.uid))), "may not set ownerReferences")
	})

	It("may delete those that it may take, as it does with one of a slot that the workload does not have any more", func(ctx SpecContext) {
		stored(ctx, s.lease(s.another))
		Expect(deletes(s.lease(s.another))(ctx, s.marked)).To(Succeed(), "its time may be over")
	})

	It("may delete and free no other one", func(ctx SpecContext) {
		foreign := changes{named("idalloc-statefulset.other-3"), set("statefulset.other", "metadata", "labels", receipt.OwnerLabel), cleared}.all
		hash := strings.Repeat("a", 40)
		hashed := changes{named("idalloc-" + hash + "-3"), set(hash, "metadata", "labels", receipt.OwnerLabel), cleared}.all
		unlabelled := changes{named("idalloc-shop"), func(o *unstructured.Unstructured) { o.SetLabels(nil) }}.all
		for says, change := range map[string]func(*unstructured.Unstructured){
			"may only delete or free Leases of a workload that its Role permits to patch, and not leases idalloc-statefulset.other-3": foreign,
			"and not leases idalloc-" + hash + "-3":      hashed,
			"do not fit the name of leases idalloc-shop": unlabelled,
		} {
			stored(ctx, s.lease(s.own, change))
			s.refused(ctx, s.marked, deletes(s.lease(s.own, change)), says)
			s.refused(ctx, s.marked, replaces(s.lease(s.own, change)), says)
		}
	})

	It("may not write with a token that names no pod", func(ctx SpecContext) {
		stored(ctx, s.lease(s.own))
		s.refused(ctx, s.noPod, replaces(s.lease(s.own)), "names no pod", "mount a token into the pod")
		s.refused(ctx, s.noPod, deletes(s.lease(s.own)), "names no pod", "mount a token into the pod")
	})

	DescribeTable("may not write one with", func(ctx SpecContext, change func(*unstructured.Unstructured), says string) {
		s.refused(ctx, s.marked, creates(s.lease(s.own, change)), says)
	},
		Entry("the name of another slot", named("idalloc-deployment.deployment-4"), "do not fit the name of leases idalloc-deployment.deployment-4", SpecTimeout(patience)),
		Entry("the label of another slot", set("4", "metadata", "labels", receipt.IDLabel), "do not fit the name", SpecTimeout(patience)),
		Entry("a slot that is no number", changes{
			named("idalloc-deployment.deployment-x"), set("x", "metadata", "labels", receipt.IDLabel),
		}.all, "do not fit the name", SpecTimeout(patience)),
		Entry("a name that is not idalloc's", named("other"), "do not fit the name", SpecTimeout(patience)),
		Entry("no labels", func(o *unstructured.Unstructured) { o.SetLabels(nil) }, "do not fit the name", SpecTimeout(patience)),
		Entry("the label of another workload", changes{
			named("idalloc-statefulset.other-3"), set("statefulset.other", "metadata", "labels", receipt.OwnerLabel),
		}.all, "does not name a workload that fits its label", SpecTimeout(patience)),
		Entry("the hash of another owner", changes{
			named("idalloc-" + strings.Repeat("a", 40) + "-3"), set(strings.Repeat("a", 40), "metadata", "labels", receipt.OwnerLabel),
		}.all, "fits its label", SpecTimeout(patience)),
		Entry("a workload that its Role does not name", changes{
			named("idalloc-statefulset.other-3"), set("statefulset.other", "metadata", "labels", receipt.OwnerLabel), of("StatefulSet/other"),
		}.all, "permits to patch", SpecTimeout(patience)),
		Entry("a workload without a name", of("Deployment/"), "does not name a workload", SpecTimeout(patience)),
		Entry("what is more than a workload", of("Deployment/deployment/scale"), "does not name a workload", SpecTimeout(patience)),
		Entry("no workload", of(""), "does not name a workload", SpecTimeout(patience)),
		Entry("an owner", owned("1"), "may not set ownerReferences or finalizers", SpecTimeout(patience)),
		Entry("a finalizer", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/keep"}) }, "may not set ownerReferences or finalizers", SpecTimeout(patience)),
		Entry("another holder", set("other/1", "spec", "holderIdentity"), `with holder "other/1"`, SpecTimeout(patience)),
		Entry("no receipt", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, "the receipt of leases", SpecTimeout(patience)),
		Entry("a receipt of another pod", annotate(`{"uid":"1","owner":"Deployment/deployment","id":3,"write":"x"}`), "does not begin with", SpecTimeout(patience)),
		Entry("a time that is too long", set(int64(3611), "spec", "leaseDurationSeconds"), "at most 3610 s", SpecTimeout(patience)),
	)

	It("may not take the label off one, or write one that is not of idalloc", func(ctx SpecContext) {
		stored(ctx, s.lease(s.own))
		s.refused(ctx, s.marked, replaces(s.lease(s.own, func(o *unstructured.Unstructured) { o.SetLabels(nil) })), "do not fit the name")
		s.refused(ctx, s.marked, creates(other()), "may only write Leases of its own workload, and not leases leader")
		stored(ctx, other())
		s.refused(ctx, s.marked, removes(slotlease.Resource, "leader"), "and not leases leader")
	})

	It("may write Leases that are not of idalloc if its Role does not permit to update all", func(ctx SpecContext) {
		const account = "leader"
		_, a := s.account(ctx, account, mark(), leases("create"),
			rbacv1.PolicyRule{APIGroups: []string{slotlease.Resource.Group}, Resources: []string{"leases"}, ResourceNames: []string{account}, Verbs: []string{"get", updateVerb}})
		Expect(creates(other())(ctx, a)).To(Succeed())
		stored(ctx, other())
		Expect(replaces(other())(ctx, a)).To(Succeed())
		s.refused(ctx, a, creates(s.lease(s.own)), fmt.Sprintf("the token is that of pod %s/", account))
	})
})

func leases(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{slotlease.Resource.Group}, Resources: []string{slotlease.Resource.Resource}, Verbs: verbs}
}

// other is a Lease that another client keeps.
func other() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object("coordination.k8s.io/v1", "Lease", "leader", map[string]any{"holderIdentity": "x", "leaseDurationSeconds": int64(15)})}
}

func (c changes) all(o *unstructured.Unstructured) {
	for _, change := range c {
		change(o)
	}
}
