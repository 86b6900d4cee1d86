package allocation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/observe"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// failing is the path of an idalloc with failpoints. hack/failpoints builds it.
var failing = os.Getenv("IDALLOC_FAILPOINTS") //nolint:gochecknoglobals // a constant of the run

// layout is how the pods of a workload run idalloc.
type layout struct {
	rules      []rbacv1.PolicyRule
	labels     map[string]string
	partitions int
	spec       func(w *workload) *corev1.PodSpec
}

func layouts() map[string]layout {
	const partitions = 8
	wrapped := func(flags ...string) func(w *workload) *corev1.PodSpec {
		return func(w *workload) *corev1.PodSpec {
			spec := w.wrapSpec("exec "+testworker+" env", append(flags, "--partitions")...)
			spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "PROBE_DIR", Value: w.probe},
				corev1.EnvVar{Name: "STOP_TIME", Value: "500ms"}) // longer than a hand-over, so that one that does not wait for it is seen
			return spec
		}
	}
	return map[string]layout{
		"of peers": {partitions: partitions, spec: wrapped()},
		// Short enough to wait for the Lease of a process that crashes as it ends, and long enough that few writes are renewals.
		"of strict peers": {rules: suite.StrictRules(), partitions: partitions, spec: wrapped("--fence-after=30s")},
		"of agents":       {labels: map[string]string{receipt.AssignLabel: receipt.ByAgent}, partitions: partitions, spec: wrapped()},
		"of a sidecar": {spec: func(w *workload) *corev1.PodSpec {
			spec := w.sidecarSpec()
			spec.InitContainers[0].Command = append(spec.InitContainers[0].Command, "--drain=http")
			spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "DRAIN_URL", Value: "http://$(POD_IP):8089/v1/drained"})
			return spec
		}},
	}
}

var _ = Describe("the process that is shipped", func() {
	if failing == "" {
		return
	}
	for name, pods := range layouts() {
		specs.BreakWrites("shares no id and no partition, and gets an id, whichever write fails "+name, 5, pods.history)
	}
})

// history has a Deployment made, scaled, updated and scaled down. In the old and in the new pods, the first process to reach this write has it fail. It
// returns which writes failed.
func (l layout) history(ctx SpecContext, fault string, number int) []string {
	GinkgoHelper()
	w, dir := newWorkload(ctx, kinds.Deployment, l.rules...), GinkgoT().TempDir()
	GinkgoWriter.Printf("%s, write %d is played in %s\n", fault, number, w.Name)
	DeferCleanup(os.RemoveAll, w.scratch())
	observed := w.observe(ctx)
	defer observed()
	d := suite.Deployment("worker", 2, l.spec(w))
	d.Annotations = map[string]string{}
	if l.partitions > 0 {
		d.Annotations[assignment.PartitionCountKey] = strconv.Itoa(l.partitions)
	}
	maps.Copy(d.Spec.Template.Labels, l.labels)
	for _, containers := range [][]corev1.Container{d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers} {
		for i := range containers {
			containers[i].Env = append(containers[i].Env,
				corev1.EnvVar{Name: "REVISION", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['pod-template-hash']"}}},
				corev1.EnvVar{Name: "IDALLOC_FAILPOINT", Value: fmt.Sprintf("%d:%s:%s", number, fault, filepath.Join(dir, "$(REVISION)"))})
		}
	}
	Expect(w.Create(ctx, d)).To(Succeed())
	l.settled(ctx, w, 2)
	Expect(w.Scale(ctx, kinds.Deployment, d.Name, 3)).To(Succeed())
	l.settled(ctx, w, 3)
	w.restart(ctx)
	Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, d.Name) }).WithContext(ctx).
		Should(And(HaveLen(3), HaveEach(HaveField("Annotations", HaveKey("test.idalloc.dev/restarted")))))
	l.settled(ctx, w, 3)
	Expect(w.Scale(ctx, kinds.Deployment, d.Name, 1)).To(Succeed())
	l.settled(ctx, w, 1)
	Expect(env.Client.AppsV1().Deployments(w.Name).Delete(ctx, d.Name, metav1.DeleteOptions{})).To(Succeed())
	Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, d.Name) }).WithContext(ctx).Should(BeEmpty())
	w.checkOverlap()
	Expect(observed()).To(BeEmpty(), "kubectl idalloc observe finds nothing")
	return hits(dir)
}

// settled waits until n pods have the ids and all partitions.
func (l layout) settled(ctx SpecContext, w *workload, n int) {
	GinkgoHelper()
	w.settled(ctx, n)
	Eventually(func() (owned int, err error) {
		live, err := w.live(ctx)
		for _, is := range live {
			owned += is.Partitions.Owned().Len()
		}
		return owned, err
	}).WithContext(ctx).Should(Equal(l.partitions))
}

// hits returns the writes that failed.
func hits(dir string) (all []string) {
	GinkgoHelper()
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name())) //nolint:gosec // a file of this spec
		Expect(err).NotTo(HaveOccurred())
		all = append(all, string(text))
	}
	return all
}

// observe follows the namespace like kubectl idalloc observe, until stop is called. stop returns how often each rule was broken.
func (w *workload) observe(ctx context.Context) (stop func() map[string]int) {
	watched := observe.New(observe.Warning, time.Now, func(f observe.Finding) { GinkgoWriter.Printf("%+v\n", f) })
	follower := &observe.Follower{Metadata: w.store.Metadata, Dynamic: w.store.Dynamic, Namespace: w.Name, Clock: clock.RealClock{}, Observer: watched}
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	under.Go(func() { follower.Run(ctx, func(err error) { GinkgoWriter.Println("observe:", err) }) })
	return func() map[string]int {
		cancel()
		under.Wait()
		return watched.Findings()
	}
}
