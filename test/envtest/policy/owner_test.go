package policy

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// says has a pod lock slot 0 of an owner, with this label. Without a label it waits.
func says(pod corev1.Pod, owner, label string) request {
	r := receipt.Receipt{UID: string(pod.UID), Owner: owner, State: receipt.Waits, Share: receipt.Nothing(), Write: receipt.Draw()}
	if label != "" {
		r.State, r.Share = receipt.Locks, receipt.Share{ID: 0}
	}
	return carries(pod, r.Encode(), label)
}

// carries writes a receipt and a label. An empty one is not written.
func carries(pod corev1.Pod, text, label string) request {
	meta := metav1.ObjectMeta{}
	if text != "" {
		meta.Annotations = map[string]string{receipt.Key: text}
	}
	if label != "" {
		meta.Labels = map[string]string{receipt.OwnerLabel: label, receipt.IDLabel: "0"}
	}
	patch := string(mustJSON(metav1.PartialObjectMetadata{ObjectMeta: meta}))
	return merges(pods, pod.Name, patch)
}

var _ = Describe("a marked account, about the workload of its pod,", Ordered, func() {
	const own, ownLabel, other, otherLabel = "Deployment/deployment", "deployment.deployment", "Deployment/other", "deployment.other"
	var s *scene
	BeforeAll(func(ctx SpecContext) { s = newScene(ctx) })

	It("may name each workload that its Role names", func(ctx SpecContext) {
		for owner, label := range map[string]string{
			own: ownLabel, "StatefulSet/statefulset": "statefulset.statefulset", "ReplicaSet/replicaset": "replicaset.replicaset", "Job/job": "job.job",
		} {
			Expect(says(s.own, owner, label)(ctx, s.marked)).To(Succeed(), owner)
			Expect(says(s.own, owner, "")(ctx, s.marked)).To(Succeed(), "it waits for a slot of "+owner)
		}
	})

	It("may name no other one, so that its token reaches no other workload", func(ctx SpecContext) {
		copied := receipt.Receipt{UID: string(s.another.UID), Owner: own, State: receipt.Locks, Write: receipt.Draw()}.Encode()
		begins := fmt.Sprintf(`{"uid":%q,"owner":"Deployment/deployment","id":0`, s.own.UID)
		for name, request := range map[string]request{
			"another workload":                    says(s.own, other, otherLabel),
			"one of another kind":                 says(s.own, "Job/other", "job.other"),
			"another one in the receipt":          says(s.own, other, ""),
			"another one in the label":            says(s.own, own, otherLabel),
			"another label than the receipt":      says(s.own, own, "job.job"),
			"a label without a receipt":           carries(s.own, "", ownLabel),
			"a hash, and its name is not hashed":  says(s.own, own, strings.Repeat("a", 40)),
			"no receipt that can be read":         carries(s.own, "{}", ownLabel),
			"the receipt of another pod":          carries(s.own, copied, ownLabel),
			"another one by a second key":         carries(s.own, begins+`,"owner":"Deployment/other"}`, ownLabel),
			"another one by a key in capitals":    carries(s.own, begins+`,"Owner":"Deployment/other"}`, ownLabel),
			"another one by a key that is masked": carries(s.own, begins+`,"\u006fwner":"Deployment/other"}`, ownLabel),
			"another one among the tokens":        carries(s.own, begins+`,"tokens":{"0":7,"owner":"Deployment/other"}}`, ownLabel),
			"another object than the tokens":      carries(s.own, begins+`,"more":{"of":{"0":7}}}`, ownLabel),
			"what is no JSON":                     carries(s.own, begins+`,}`, ownLabel),
			"no kind and name":                    says(s.own, "deployment", ""),
			"more than a kind and a name":         says(s.own, "Deployment/deployment/scale", ""),
		} {
			By(name)
			s.refused(ctx, s.marked, request, "the receipt of pods "+s.own.Name, "permits to patch")
		}
	})

	It("may have a hash for a label, and Leases with it, if its Role names the hash", func(ctx SpecContext) {
		long := "Deployment/" + strings.Repeat("a", 60)
		hash := assignment.OwnerLabelValue(long)
		role := []rbacv1.PolicyRule{mark(), writes(strings.Repeat("a", 60)), leases("create")}
		lock := rbacv1.PolicyRule{APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, ResourceNames: []string{hash}, Verbs: []string{"lock"}}
		pod, with := s.account(ctx, "with-lock", append(role, lock)...)
		Expect(says(pod, long, hash)(ctx, with)).To(Succeed())
		Expect(creates(s.lease(pod, hashed(long, hash)))(ctx, with)).To(Succeed())
		another := strings.Repeat("b", 40)
		s.refused(ctx, with, says(pod, long, another), "the verb lock on slots.idalloc.dev with resourceNames ["+another+"]")
		s.refused(ctx, with, creates(s.lease(pod, hashed(long, another))), "the verb lock on slots.idalloc.dev with resourceNames ["+another+"]")

		pod, without := s.account(ctx, "without-lock", role...)
		s.refused(ctx, without, says(pod, long, hash), "the verb lock on slots.idalloc.dev with resourceNames ["+hash+"]")
	})
})

// hashed has the Lease be that of slot 3 of another owner, with this label.
func hashed(owner, label string) func(*unstructured.Unstructured) {
	return changes{named("idalloc-" + label + "-3"), set(label, "metadata", "labels", receipt.OwnerLabel), of(owner)}.all
}
