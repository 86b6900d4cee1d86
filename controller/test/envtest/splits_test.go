package envtest

import (
	"context"
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// orphan deletes the Deployment without its ReplicaSets, and waits until they have no controller.
func orphan(ctx context.Context, ns string) {
	GinkgoHelper()
	Expect(client.AppsV1().Deployments(ns).Delete(ctx, worker, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)})).To(Succeed())
	Eventually(func(g Gomega, ctx context.Context) {
		list, err := client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveEach(HaveField("OwnerReferences", BeEmpty())))
		_, err = client.AppsV1().Deployments(ns).Get(ctx, worker, metav1.GetOptions{})
		g.Expect(err).To(HaveOccurred())
	}).WithContext(ctx).Should(Succeed())
}

// identities returns what each pod with an id was told, by the pod's UID.
func identities(ctx context.Context, ns string) map[types.UID]string {
	GinkgoHelper()
	all := map[types.UID]string{}
	for _, pod := range pods(ctx, ns) {
		if text := pod.Annotations[receipt.IdentityKey]; text != "" && pod.DeletionTimestamp == nil {
			all[pod.UID] = text
		}
	}
	return all
}

var _ = Describe("a Deployment that is deleted in mid-rollout without its ReplicaSets", func() {
	midway := func(ctx SpecContext) (ns string) {
		ns = running(ctx, 3)
		patch(ctx, ns, fmt.Sprintf(versioned, "2", `"yes"`))
		Eventually(func(ctx context.Context) string { return versionOf(ctx, ns, "2") }).WithContext(ctx).Should(Equal("2"))
		Eventually(func(ctx context.Context) []corev1.Pod { return pods(ctx, ns) }).WithContext(ctx).Should(HaveLen(4))
		return ns
	}

	It("keeps every pod and its token, gives no id meanwhile, and is updated once it is back", func(ctx SpecContext) {
		ns := midway(ctx)
		before, removed := identities(ctx, ns), len(events(ctx, ns, "PodRemoved"))
		Expect(before).To(HaveLen(3))
		orphan(ctx, ns)
		hears(ctx, ns, "WorkloadFrozen").ShouldNot(BeEmpty())
		Expect(identities(ctx, ns)).To(Equal(before))

		d := deployment(3)
		d.Spec.Template.Annotations = map[string]string{"version": "2", "broken": "yes"}
		create(ctx, ns, d)
		Eventually(func(g Gomega, ctx context.Context) {
			list, err := client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(HaveEach(HaveField("OwnerReferences", HaveLen(1))))
		}).WithContext(ctx).Should(Succeed())
		Expect(identities(ctx, ns)).To(Equal(before))
		Expect(events(ctx, ns, "PodRemoved")).To(HaveLen(removed))

		patch(ctx, ns, fmt.Sprintf(versioned, "3", "null"))
		rolled(ctx, ns, "3", 3)
	})

	It("lets a ReplicaSet go on alone that a person names", func(ctx SpecContext) {
		ns := midway(ctx)
		before := identities(ctx, ns)
		orphan(ctx, ns)
		hears(ctx, ns, "WorkloadFrozen").ShouldNot(BeEmpty())
		sets, err := client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		old := sets.Items[0]
		if old.Spec.Template.Annotations["version"] == "2" {
			old = sets.Items[1]
		}
		// Its third pod waits, and id 2 of the former owner is the other ReplicaSet's.
		text := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, assignment.AdoptKey, old.Name)
		_, err = client.AppsV1().ReplicaSets(ns).Patch(ctx, old.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods(ctx, ns) {
			if pod.Annotations[receipt.IDKey] == "0" {
				Expect(client.CoreV1().Pods(ns).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
				delete(before, pod.UID)
			}
		}
		Eventually(func(ctx context.Context) string { return versionOf(ctx, ns, "0") }).WithContext(ctx).ShouldNot(Equal("none"))
		now := identities(ctx, ns)
		for uid, text := range before {
			Expect(now).To(HaveKeyWithValue(uid, text))
		}
		for text := range maps.Values(now) {
			Expect(text).To(ContainSubstring(`"kind":"Deployment","name":"worker"`), "pods beside those that began under a name lock under it")
		}
	})
})

var _ = Describe("a running pod whose receipt and id another program removes", func() {
	It("gets the same ones again, and an Event says so", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		create(ctx, ns, deployment(2))
		haveIDs(ctx, ns, 2)
		before := identities(ctx, ns)
		for _, pod := range pods(ctx, ns) {
			text := fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null},"labels":{%q:null,%q:null}}}`, receipt.Key, receipt.IDKey, receipt.IDLabel, receipt.OwnerLabel)
			_, err := client.CoreV1().Pods(ns).Patch(ctx, pod.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		hears(ctx, ns, "LockChanged").Should(HaveLen(2))
		Eventually(func(ctx context.Context) (ids []string) {
			for _, pod := range pods(ctx, ns) {
				ids = append(ids, pod.Annotations[receipt.IDKey])
			}
			return ids
		}).WithContext(ctx).Should(ConsistOf("0", "1"))
		haveIDs(ctx, ns, 2)
		Expect(identities(ctx, ns)).To(Equal(before))
	})
})

var _ = Describe("a rolling update while a node is lost", func() {
	It("passes the pods by that it cannot end, and updates all others", func(ctx SpecContext) {
		ns := running(ctx, 3)
		var lost string
		for _, pod := range pods(ctx, ns) {
			if pod.Annotations[receipt.IDKey] == "2" {
				lost = pod.Name
			}
		}
		hold := func(ctx context.Context, text string) {
			_, err := client.CoreV1().Pods(ns).Patch(ctx, lost, types.MergePatchType, []byte(text), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		hold(ctx, `{"metadata":{"finalizers":["example.com/node"]}}`)
		DeferCleanup(func(ctx SpecContext) { hold(ctx, `{"metadata":{"finalizers":null}}`) })
		Expect(client.CoreV1().Pods(ns).Delete(ctx, lost, metav1.DeleteOptions{})).To(Succeed())
		patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
		for _, id := range []string{"0", "1"} {
			Eventually(func(ctx context.Context) string { return versionOf(ctx, ns, id) }).WithContext(ctx).Should(Equal("2"))
		}
		Expect(versionOf(ctx, ns, "2")).To(Equal(""))
	})
})
