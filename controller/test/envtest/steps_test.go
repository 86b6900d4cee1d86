package envtest

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

const worker = "worker"

var _ = Describe("the controller", func() {
	It("gives ids to gated pods, and tells them the live count", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		create(ctx, ns, deployment(3))
		haveIDs(ctx, ns, 3)
		patch(ctx, ns, `{"spec":{"replicas":5}}`)
		haveIDs(ctx, ns, 5)
		patch(ctx, ns, `{"spec":{"replicas":2}}`)
		kubelet(ns) // a pod above the count is evicted only if no other is unavailable
		haveIDs(ctx, ns, 2)
	})

	It("gives machine numbers, keeps the first one in force, and lets ids rest", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		d := deployment(2)
		d.Annotations = map[string]string{assignment.ReuseKey: "2s"}
		d.Spec.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1))}}
		d.Spec.Template.Annotations = map[string]string{assignment.FirstNumberKey: "1024"}
		create(ctx, ns, d)
		haveIDs(ctx, ns, 2)
		numbers := func() map[string]string {
			found := map[string]string{}
			for _, pod := range pods(ctx, ns) {
				is := identity.Identity{}
				Expect(is.UnmarshalJSON([]byte(pod.Annotations[receipt.IdentityKey]))).To(Succeed())
				Expect(strconv.Itoa(is.Number)).To(Equal(pod.Annotations[receipt.NumberKey]))
				found[pod.Annotations[receipt.IDKey]] = pod.Annotations[receipt.NumberKey]
			}
			return found
		}
		Expect(numbers()).To(Equal(map[string]string{"0": "1024", "1": "1025"}))

		// A new pod asks for other numbers and has the same: another one still has a number.
		kubelet(ns)
		patch(ctx, ns, `{"spec":{"template":{"metadata":{"annotations":{"idalloc.dev/first-number":"1025"}}}}}`)
		Eventually(func(g Gomega) {
			for _, pod := range pods(ctx, ns) {
				g.Expect(pod.Annotations).To(HaveKeyWithValue(assignment.FirstNumberKey, "1025"))
			}
		}).WithContext(ctx).Should(Succeed())
		haveIDs(ctx, ns, 2)
		Expect(numbers()).To(Equal(map[string]string{"0": "1024", "1": "1025"}))
		hears(ctx, ns, "IDRests").ShouldNot(BeEmpty())
	})

	It("writes a receipt again that was removed", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		create(ctx, ns, deployment(2))
		haveIDs(ctx, ns, 2)
		pod := pods(ctx, ns)[0]
		without := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, receipt.Key) // whatever the controller writes meanwhile
		_, err := client.CoreV1().Pods(ns).Patch(ctx, pod.Name, types.MergePatchType, without, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(ctx context.Context) string {
			now, err := client.CoreV1().Pods(ns).Get(ctx, pod.Name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return now.Annotations[receipt.Key]
		}).WithContext(ctx).Should(ContainSubstring(`"begun":true`))
		Expect(idOf(ctx, ns, pod.Name)).To(Equal(pod.Annotations[receipt.IDKey]))
	})

	It("gives pods of a StatefulSet the ids of their ordinals, and replaces one that keeps an id above the count", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		_, err := client.AppsV1().StatefulSets(ns).Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: worker}, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": worker}}, Template: template(),
			PodManagementPolicy: appsv1.ParallelPodManagement, Ordinals: &appsv1.StatefulSetOrdinals{Start: 4},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		haveIDs(ctx, ns, 3)
		for name, want := range map[string]string{"worker-4": "0", "worker-5": "1", "worker-6": "2"} {
			Expect(idOf(ctx, ns, name)).To(Equal(want))
		}

		// The ordinals begin one later: worker-7 gets the id of worker-4, and the others keep theirs. Then worker-5 stays alone, with id 1.
		change := func(text string) {
			_, err := client.AppsV1().StatefulSets(ns).Patch(ctx, worker, types.MergePatchType, []byte(text), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		change(`{"spec":{"ordinals":{"start":5}}}`)
		Eventually(func(ctx context.Context) map[string]string {
			ids := map[string]string{}
			for _, pod := range pods(ctx, ns) {
				ids[pod.Name] = pod.Annotations[receipt.IDKey]
			}
			return ids
		}).WithContext(ctx).Should(Equal(map[string]string{"worker-5": "1", "worker-6": "2", "worker-7": "0"}))
		change(`{"spec":{"replicas":1}}`)
		haveIDs(ctx, ns, 1)
	})

	It("says that a pod of no known kind gets no id", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		control(ns)
		t := template()
		_, err := client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone", Labels: t.Labels}, Spec: t.Spec}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		hears(ctx, ns, "OwnerUnknown").Should(HaveLen(1))
	})
})

func idOf(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod.Annotations[receipt.IDKey]
}

func events(ctx context.Context, namespace, reason string) []corev1.Event {
	GinkgoHelper()
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// hears are the Events of a reason that come.
func hears(ctx context.Context, namespace, reason string) AsyncAssertion {
	return Eventually(func(ctx context.Context) []corev1.Event { return events(ctx, namespace, reason) }).WithContext(ctx)
}

// lock is T2, as a controller leaves it that ends then.
func lock(ctx context.Context, pod *corev1.Pod, id int) {
	GinkgoHelper()
	s, err := store.New(config, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	meta, err := s.GetPod(ctx, pod.Namespace, pod.Name)
	Expect(err).NotTo(HaveOccurred())
	_, err = s.SwapLock(ctx, meta, "", receipt.Receipt{
		UID: string(pod.UID), Owner: "Deployment/" + worker, State: receipt.Locks, Share: receipt.Share{ID: id}, HandsOver: true, Write: receipt.Draw(),
	})
	Expect(err).NotTo(HaveOccurred())
}
