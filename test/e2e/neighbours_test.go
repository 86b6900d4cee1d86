//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// large is close to the largest string that etcd stores in one object.
const large = 1_200_000

// neighbours are specs in which another namespace's user, or a thief of the controller's token, tries to harm a workload.
func neighbours() {
	It("is not changed by a forged managedFields of the controller's token, by which another manager's apply would remove fields", func(ctx SpecContext) {
		w := prepare(ctx, files, 2, assigned)
		w.apply(ctx)
		w.held(ctx, 2)
		thief := as(ctx, &controllers(ctx)[0])
		patch := func(kind types.PatchType, manager, patch string) error {
			options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
			if kind == types.ApplyPatchType {
				options.Force = new(true)
			}
			_, err := thief.AppsV1().Deployments(w.namespace).Patch(ctx, name, kind, []byte(patch), options)
			return err
		}
		const forged = `[{"manager":"kubectl","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]`
		apply := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"replicas":2}}`, name)
		for manager, err := range map[string]error{
			"a merge patch":   patch(types.MergePatchType, "kubectl", `{"metadata":{"managedFields":`+forged+`}}`),
			"a JSON patch":    patch(types.JSONPatchType, "kubectl", `[{"op":"replace","path":"/metadata/managedFields","value":`+forged+`}]`),
			"a forced apply":  patch(types.ApplyPatchType, "gitops", apply),
			"its own manager": patch(types.ApplyPatchType, assignment.FieldManager, apply),
		} {
			Expect(err).To(And(MatchError(apierrors.IsForbidden, "IsForbidden"), MatchError(ContainSubstring("managedFields of deployments "+name))), manager)
		}
		Expect(patch(types.MergePatchType, assignment.FieldManager, fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, assignment.Key))).To(Succeed())
	}, SpecTimeout(2*patience))

	It("has its ids although another namespace's pods and workloads are as large as the API server stores", func(ctx SpecContext) {
		w := prepare(ctx, files, 2, assigned)
		w.apply(ctx)
		w.held(ctx, 2)
		before := memory(ctx)

		By("making 150 pods with a variable of 1.2 MB, which no node takes")
		other := newWorkload(ctx, files) // none of its pods runs, so prepare's checks have nothing to look at
		spec := &other.manifest.deployment.Spec
		spec.Replicas = new(int32(150))
		for _, c := range []change{assigned, rolling("100%", "100%")} {
			c(spec)
		}
		pod := &spec.Template.Spec
		pod.NodeSelector = map[string]string{corev1.LabelHostname: "none"}
		worker := other.manifest.container(name)
		worker.Env = append(worker.Env, corev1.EnvVar{Name: "LARGE", Value: strings.Repeat("x", large)})
		DeferCleanup(func(ctx SpecContext) {
			Expect(other.kubectl(ctx, "delete", "deployment", "--all", "--cascade=foreground", "--timeout=10m")).Error().NotTo(HaveOccurred())
		}, NodeTimeout(5*patience))
		_, err := client.AppsV1().Deployments(other.namespace).Create(ctx, other.manifest.deployment, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(other.assignment(ctx, g)).To(HaveLen(150))
		}).WithContext(ctx).WithTimeout(5 * patience).Should(Succeed())

		By("making 100 Deployments with an owner reference of 1.2 MB")
		small := w.manifest.deployment.DeepCopy()
		small.Spec.Replicas = new(int32(0))
		for i := range 100 {
			small.Name = fmt.Sprint("large-", i)
			small.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: strings.Repeat("K", large), Name: "none", UID: "none"}}
			_, err := client.AppsV1().Deployments(other.namespace).Create(ctx, small, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}

		w.scale(ctx, "3")
		w.held(ctx, 3)
		for _, p := range controllers(ctx) {
			Expect(p.Status.ContainerStatuses[0].RestartCount).To(BeZero(), p.Name)
		}
		AddReportEntry("memory of the controllers at most", "before: "+before+"; beside them: "+memory(ctx))

		By("starting the controller beside them")
		for _, p := range controllers(ctx) {
			Expect(client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})).To(Succeed())
		}
		w.scale(ctx, "4")
		w.held(ctx, 4)
		for _, p := range controllers(ctx) {
			Expect(p.Status.ContainerStatuses[0].RestartCount).To(BeZero(), p.Name)
		}
		AddReportEntry("memory of the controllers that started beside them", memory(ctx))
	}, SpecTimeout(10*patience))
}

// controllers returns the pods of the controller that run.
func controllers(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods("idalloc-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=idalloc-controller", FieldSelector: "status.phase=Running"})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.Items).NotTo(BeEmpty())
	return list.Items
}

// memory returns, for each controller, the most memory that it had so far, as Linux says.
func memory(ctx context.Context) string {
	GinkgoHelper()
	var peaks []string
	for _, p := range controllers(ctx) {
		running, err := processes(p.Name)
		Expect(err).NotTo(HaveOccurred())
		for program, pid := range running {
			peaks = append(peaks, fmt.Sprintf("%s %d kB", program, kilobytes(pid, "VmHWM")))
		}
	}
	return strings.Join(peaks, ", ")
}

// kilobytes returns a number of a process, as Linux says.
func kilobytes(pid int, name string) (number int) {
	GinkgoHelper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(status), name+":")
	Expect(found).To(BeTrue(), name)
	_, err = fmt.Sscan(rest, &number)
	Expect(err).NotTo(HaveOccurred())
	return number
}
