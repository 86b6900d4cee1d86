package envtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// limit is the memory limit of config/controller, in KiB, and large nearly what one object may have.
const limit, large = 256 << 10, 1_200_000

// The user of one namespace chooses where objects are large. Each flood is one that a controller of whole objects does not survive.
var _ = Describe("objects that are large", Label("nightly"), func() {
	for what, flood := range map[string]func(ctx context.Context, ns string){
		"a variable of 150 pods":                         largeVariables,
		"ownerReferences of 100 Deployments":             largeOwners,
		"the controllers, gates and annotations of pods": largePods,
	} {
		It("take less memory than the controller has: "+what, func(ctx SpecContext) {
			ns := newNamespace(ctx)
			flood(ctx, ns)
			create(ctx, ns, deployment(3))
			peak := process(ctx, ns)
			Eventually(func(ctx context.Context) []int { return begun(ctx, ns, 3) }).WithContext(ctx).WithTimeout(2 * time.Minute).Should(HaveLen(3))
			if strings.Contains(what, "variable") {
				Eventually(func(ctx context.Context) int { return withID(ctx, ns) }).WithContext(ctx).WithTimeout(3 * time.Minute).Should(Equal(153))
			}
			AddReportEntry("peak", fmt.Sprintf("%s: %d MiB of %d MiB", what, peak()>>10, limit>>10))
			Expect(peak()).To(BeNumerically("<", limit))
		})
	}
})

// process runs the controller's program for a namespace until the spec ends. peak returns how much memory it has had, in KiB.
func process(ctx context.Context, namespace string) (peak func() int) {
	GinkgoHelper()
	program := os.Getenv("FLOOD_PROGRAM")
	if program == "" {
		program = filepath.Join(GinkgoT().TempDir(), "idalloc-controller")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../cmd/idalloc-controller").CombinedOutput() //nolint:gosec // the program under test
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
	kubeconfig, err := plane.WriteKubeconfig("flood-"+namespace, config)
	Expect(err).NotTo(HaveOccurred())
	//nolint:gosec // the program under test
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "--kubeconfig="+kubeconfig, "--namespace="+namespace, "--leader-election=false", "--metrics-address=0", "--health-address=0")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%dKiB", limit))
	cmd.Stderr = GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(cmd.Process.Kill()).To(Succeed())
		_ = cmd.Wait() // it was killed
	})
	return func() (kib int) {
		GinkgoHelper()
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) //nolint:gosec // the process of this spec
		Expect(err).NotTo(HaveOccurred())
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		_, err = fmt.Sscan(after, &kib)
		Expect(err).NotTo(HaveOccurred(), "the process is there")
		return kib
	}
}

func withID(ctx context.Context, namespace string) (n int) {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: receipt.AssignLabel + "=" + receipt.ByController, Limit: 20})
	for ; ; list, err = client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: receipt.AssignLabel + "=" + receipt.ByController, Limit: 20, Continue: list.Continue,
	}) {
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range list.Items {
			if pod.Annotations[receipt.IDKey] != "" {
				n++
			}
		}
		if list.Continue == "" {
			return n
		}
	}
}

func largeVariables(ctx context.Context, ns string) {
	GinkgoHelper()
	d := deployment(150)
	d.Name, d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = "large", "large", "large"
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", large)}}
	create(ctx, ns, d)
	Eventually(func(ctx context.Context) (n int32) {
		d, err := client.AppsV1().Deployments(ns).Get(ctx, "large", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		return d.Status.Replicas
	}).WithContext(ctx).WithTimeout(2 * time.Minute).Should(BeEquivalentTo(150))
}

func largeOwners(ctx context.Context, ns string) {
	GinkgoHelper()
	for i := range 100 {
		d := deployment(0)
		d.Name, d.Spec.Template.Labels = fmt.Sprintf("large-%d", i), map[string]string{"app": worker}
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: strings.Repeat("K", large), Name: "any", UID: "any"}}
		create(ctx, ns, d)
	}
}

func largePods(ctx context.Context, ns string) {
	GinkgoHelper()
	for i := range 150 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{receipt.AssignLabel: receipt.ByController}}, Spec: template().Spec}
		switch i % 3 {
		case 0:
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: strings.Repeat("K", large), Name: "any", UID: "any", Controller: new(true)}}
		case 1:
			for g := range 3000 {
				pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: fmt.Sprintf("%s.example.com/%d", strings.Repeat("g", 60), g)})
			}
		default:
			pod.Annotations = map[string]string{kinds.CompletionIndexLabel: strings.Repeat("1", 250_000)}
		}
		_, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
