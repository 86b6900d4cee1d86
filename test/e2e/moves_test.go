//go:build e2e

package e2e

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// movedPartitions is how many the three pods of a spec divide.
	movedPartitions = 6
	// twin is a second workload with the selector of the first.
	twin = "w2"
)

var _ = Describe("Pods of a Deployment that is deleted without them", func() {
	It("work for their ReplicaSet, for the Deployment when it is back, and for one of another name, and never two on one partition", func(ctx SpecContext) {
		w := prepare(ctx, run, 3, sharingRun)
		w.divide(movedPartitions)
		w.moves(ctx, func(deployment string) {
			if deployment == twin {
				w.create(ctx, w.twin())
				return
			}
			w.apply(ctx)
		}, func(resource, owner string) { w.permit(ctx, resource, owner) }, func(owner string) { w.worksFor(ctx, owner) })
	}, SpecTimeout(4*patience))
})

// moves lets the pods change owners. The function apply makes the Deployment of this name, permit lets the pods work for one more owner, and works waits until
// all of them work for an owner.
func (w *workload) moves(ctx context.Context, apply func(deployment string), permit func(resource, owner string), works func(owner string)) {
	GinkgoHelper()
	apply(name)
	works("Deployment/" + name)
	pods, err := w.pods(ctx)
	Expect(err).NotTo(HaveOccurred())
	set := metav1.GetControllerOf(&pods[0]).Name
	permit("replicasets", set)

	w.orphan(ctx, name)
	code, said := w.verdict(ctx, "Deployment/"+name)
	Expect(code).To(Equal(1), said)
	Expect(said).To(ContainSubstring(name))
	By("deleting a pod, whose replacement has another owner than the others began with")
	Expect(w.kubectl(ctx, "delete", "pod", pods[0].Name)).Error().NotTo(HaveOccurred())
	works("ReplicaSet/" + set)

	By("applying the manifest again")
	apply(name)
	works("Deployment/" + name)

	By("applying it under another name, once it is deleted again")
	permit("deployments", twin)
	w.orphan(ctx, name)
	apply(twin)
	works("Deployment/" + twin)

	By("going back")
	w.orphan(ctx, twin)
	apply(name)
	works("Deployment/" + name)
}

// sharingRun has idalloc run start a program that works on the partitions that the files name.
func sharingRun(s *appsv1.DeploymentSpec) {
	pod := &s.Template.Spec
	c := &pod.Containers[0]
	c.Command, c.Args = slices.Concat(run.command()[:2], []string{"--partitions", "--dir=" + identity.DefaultDir, "--", program, "share"}), nil
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "ids", MountPath: identity.DefaultDir})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "ids", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// permit adds one more owner to the role.
func (w *workload) permit(ctx context.Context, resource, owner string) {
	GinkgoHelper()
	role := w.manifest.role
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{resource}, ResourceNames: []string{owner}, Verbs: []string{"get", "list", "watch", "patch"},
	})
	w.apply(ctx)
}

// orphan deletes a Deployment without its ReplicaSet and pods.
func (w *workload) orphan(ctx context.Context, deployment string) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "delete", "deployment", deployment, "--cascade=orphan")).Error().NotTo(HaveOccurred())
}

// twin returns the Deployment under the other name.
func (w *workload) twin() *appsv1.Deployment {
	d := w.manifest.deployment.DeepCopy()
	d.Name = twin
	return d
}

// worksFor waits until the three pods have the ids of this owner and work on all partitions, and verify finds nothing.
func (w *workload) worksFor(ctx context.Context, owner string) {
	GinkgoHelper()
	const n = 3
	w.heldFor(ctx, owner, n)
	w.divided(ctx, n)
	w.allWorkFor(ctx, owner, n)
}

// allWorkFor waits until verify finds nothing, and n pods at work.
func (w *workload) allWorkFor(ctx context.Context, owner string, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		code, said := w.verdict(ctx, owner)
		g.Expect(code).To(BeZero(), said)
		g.Expect(said).To(ContainSubstring("live pods hold %d of %d ids, 0 wait; they lock %d of %d partitions", n, n, w.divides, w.divides))
	}).WithContext(ctx).Should(Succeed())
}

// heldFor waits until n pods lock the ids 0 to n-1 of this owner once each, and all of them are Ready.
func (w *workload) heldFor(ctx context.Context, owner string, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		pods, err := w.pods(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		h := holders{}
		for _, p := range pods {
			r, err := receipt.Of(&p, owner)
			g.Expect(err).NotTo(HaveOccurred())
			if r.State != receipt.Locks {
				continue
			}
			g.Expect(h).NotTo(HaveKey(r.Share.ID), "locked twice")
			h[r.Share.ID] = p.Name
			g.Expect(p.DeletionTimestamp).To(BeNil(), p.Name)
			g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))), p.Name)
		}
		g.Expect(slices.Sorted(maps.Keys(h))).To(Equal(upTo(n)), "the ids of %s", owner)
	}).WithContext(ctx).Should(Succeed())
}

// verdict returns the exit code of idalloc verify, and what it prints.
func (w *workload) verdict(ctx context.Context, owner string) (code int, said string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, os.Getenv("E2E_IDALLOC"), "verify", owner, "-n", w.namespace) //nolint:gosec // what hack/e2e built
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}
