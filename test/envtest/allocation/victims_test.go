package allocation

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// victims are pods that hold ids while somebody else damages what idalloc wrote.
type victims struct {
	*recorder
	holders map[string]identity.Identity
	at      map[string]int
}

// holding starts three pods and waits for their ids.
func holding(ctx SpecContext) *victims {
	GinkgoHelper()
	v := &victims{recorder: newRecorder(newWorkload(ctx, store.Deployment))}
	pods := podNames(v.idle(ctx, 3, rolling("1", "0")))
	for _, pod := range pods {
		v.start(ctx, pod)
	}
	v.holders = v.assigned(ctx, pods...)
	v.at = v.mark()
	return v
}

// unharmed waits until the damage is repaired, and expects that no holder was disturbed by it.
func (v *victims) unharmed(ctx context.Context) {
	GinkgoHelper()
	v.restored(ctx, v.holders)
	v.undisturbed(v.at, v.holders)
}

// newcomers starts an instance for each live pod that is not stalled and has none, until n pods have an id.
func (v *victims) newcomers(ctx context.Context, n int) {
	GinkgoHelper()
	now := maps.Clone(v.holders)
	Eventually(func(g Gomega) {
		pods, err := v.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		for _, p := range pods {
			if p.DeletionTimestamp != nil || p.Spec.Containers[0].ReadinessProbe != nil {
				continue
			}
			if _, known := v.instances[p.Name]; !known {
				v.start(ctx, p.Name)
			}
			now[p.Name] = v.instances[p.Name].Current()
		}
		g.Expect(now).To(HaveLen(n))
		for _, id := range now {
			g.Expect(id.Assigned()).To(BeTrue())
		}
	}).WithContext(ctx).Should(Succeed())
	marks := v.caughtUp(ctx, now)
	for name := range now {
		if _, known := v.holders[name]; !known {
			v.at[name] = marks[name]
		}
	}
	v.holders = now
}

// replace does what kubectl replace does with a manifest that knows nothing of idalloc.
func (w *workload) replace(ctx context.Context) {
	GinkgoHelper()
	deployments := env.Client.AppsV1().Deployments(w.Name)
	d, err := deployments.Get(ctx, "worker", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	manifest := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace}, Spec: d.Spec}
	_, err = deployments.Update(ctx, manifest, metav1.UpdateOptions{FieldManager: "kubectl-replace"})
	Expect(err).NotTo(HaveOccurred())
}
