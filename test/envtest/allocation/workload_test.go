package allocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
	"github.com/idalloc/idalloc/test/overlap"
)

// workload is a spec's namespace with one owner in it.
type workload struct {
	*suite.Namespace
	ref   kinds.Ref
	store *store.Store
	probe string // directory of the programs' logs
}

// newWorkload makes a namespace for an owner of this kind, whose pods may do what the rules say, or suite.Rules without any. It checks for overlaps when the spec ends.
func newWorkload(ctx SpecContext, kind string, rules ...rbacv1.PolicyRule) *workload {
	GinkgoHelper()
	ns, err := env.NewNamespace(ctx, rules...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	ref, err := kinds.ParseRef(kind+"/worker", ns.Name)
	Expect(err).NotTo(HaveOccurred())
	s, err := store.New(env.ControlPlane.Config(), clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	w := &workload{Namespace: ns, ref: ref, store: s, probe: GinkgoT().TempDir()}
	DeferCleanup(w.checkOverlap)
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			w.dump(ctx)
		}
	})
	return w
}

// readyz probes an id. As on a cluster, where three failures take half a minute by default, a pod that moves stays Ready
// until a controller has done what the spec asks for: a ReplicaSet ends pods that are not Ready first, whatever their rank.
func readyz(port int32) *corev1.Probe {
	get := &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(port)}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, FailureThreshold: 300}
}

// podSpec is the layout of config/examples/files: init container, program, watcher.
func (w *workload) podSpec() *corev1.PodSpec {
	worker := suite.Container("worker", testworker, "files", fileworker)
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "IDALLOC_DIR", Value: "/ids"}, corev1.EnvVar{Name: "PROBE_DIR", Value: w.probe})
	watcher := suite.Container("idalloc", env.Binary, "watch", "--dir", "/ids", "--http-address", "$(POD_IP):8089")
	watcher.ReadinessProbe = readyz(8089)
	spec := suite.PodSpec(worker, watcher)
	spec.InitContainers = []corev1.Container{suite.Container("init", env.Binary, "init", "--dir", "/ids")}
	suite.Share(spec, "/ids")
	return spec
}

// sidecarSpec has one native sidecar for both.
func (w *workload) sidecarSpec() *corev1.PodSpec {
	spec := w.podSpec()
	watcher := suite.Sidecar("idalloc", spec.Containers[1].Command...)
	watcher.ReadinessProbe = spec.Containers[1].ReadinessProbe
	watcher.StartupProbe = spec.Containers[1].ReadinessProbe.DeepCopy()
	watcher.StartupProbe.FailureThreshold = 1000
	watcher.VolumeMounts = spec.Containers[1].VolumeMounts
	spec.Containers, spec.InitContainers = spec.Containers[:1], []corev1.Container{watcher}
	return spec
}

// owner reads the owner.
func (w *workload) owner(ctx context.Context) store.Owner {
	GinkgoHelper()
	owner, err := w.store.GetOwner(ctx, w.ref)
	Expect(err).NotTo(HaveOccurred())
	return owner
}

// assignment returns the owner's map.
func (w *workload) assignment(ctx context.Context) assignment.Slots {
	GinkgoHelper()
	return w.owner(ctx).Record.State.Slots
}

// get asks a pod's watcher. The caller closes the body.
func (w *workload) get(ctx context.Context, pod corev1.Pod) (*http.Response, error) {
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("pod %s has no address yet", pod.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8089/v1/identity", http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}

// identity asks a pod's watcher who it is.
func (w *workload) identity(ctx context.Context, pod corev1.Pod) (identity.Identity, error) {
	var id identity.Identity
	resp, err := w.get(ctx, pod)
	if err != nil {
		return id, err
	}
	err = json.NewDecoder(resp.Body).Decode(&id)
	return id, errors.Join(err, resp.Body.Close())
}

// live asks every live pod who it is. By name.
func (w *workload) live(ctx context.Context) (map[string]identity.Identity, error) {
	pods, err := w.Pods(ctx, w.ref.Name)
	if err != nil {
		return nil, err
	}
	live, held := map[string]identity.Identity{}, map[int]corev1.Pod{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		id, err := w.identity(ctx, pod)
		if err != nil {
			return nil, err
		}
		live[pod.Name] = id
		if !id.Assigned() {
			continue
		}
		if other, twice := held[id.ID]; twice {
			again, err := w.identity(ctx, other)
			if err == nil && again.Assigned() && again.ID == id.ID && again.Token == live[other.Name].Token {
				Fail(fmt.Sprintf("%s and %s both hold %d", other.Name, pod.Name, id.ID))
			}
			return nil, fmt.Errorf("%d went from %s to %s while they were asked", id.ID, other.Name, pod.Name)
		}
		held[id.ID] = pod
	}
	return live, nil
}

// settled waits until n pods live and hold 0 to n-1 of n, the owner says the same, and every receipt fits. While more
// live, those that are to stay may not be those that hold: a controller may be slower than all pods are.
func (w *workload) settled(ctx SpecContext, n int) map[int]string {
	GinkgoHelper()
	var held map[int]string
	Eventually(func(g Gomega) {
		live, err := w.live(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live).To(HaveLen(n))
		held = map[int]string{}
		for name, id := range live {
			g.Expect(id).To(And(HaveField("State", identity.StateAssigned), HaveField("Count", n)))
			held[id.ID] = name
		}
		g.Expect(slices.Sorted(maps.Keys(held))).To(Equal(ids(n)))
		owner, err := w.store.GetOwner(ctx, w.ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owner.Record.Problems).To(BeEmpty())
		slots := map[int]string(owner.Record.State.Slots)
		maps.DeleteFunc(slots, func(id int, _ string) bool { return id >= n }) // those go with the next write
		g.Expect(slots).To(Equal(held))
		pods, err := w.Pods(ctx, w.ref.Name)
		g.Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods {
			for id, name := range held {
				if pod.Name == name {
					g.Expect(pod.Labels).To(HaveKeyWithValue(receipt.IDLabel, strconv.Itoa(id)))
				}
			}
		}
	}).WithContext(ctx).Should(Succeed())
	return held
}

func ids(n int) []int {
	out := make([]int, 0, n)
	for i := range n {
		out = append(out, i)
	}
	return out
}

// pod returns one of the owner's pods.
func (w *workload) pod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod, err := env.Client.CoreV1().Pods(w.Name).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// patchPod changes a pod as another client would.
func (w *workload) patchPod(ctx context.Context, name, patch string) {
	GinkgoHelper()
	_, err := env.Client.CoreV1().Pods(w.Name).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	Expect(err).NotTo(HaveOccurred())
}

// patchOwner changes the owner as another client would.
func (w *workload) patchOwner(ctx context.Context, content types.PatchType, patch string) {
	GinkgoHelper()
	owners := w.store.Dynamic.Resource(w.ref.GVR()).Namespace(w.Name)
	_, err := owners.Patch(ctx, w.ref.Name, content, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	Expect(err).NotTo(HaveOccurred())
}

func mustJSON(v any) string {
	GinkgoHelper()
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// checkOverlap reads what the programs logged.
func (w *workload) checkOverlap() {
	entries, err := os.ReadDir(w.probe)
	Expect(err).NotTo(HaveOccurred())
	if len(entries) == 0 {
		return // the spec runs no program of its own
	}
	records, err := overlap.Read(w.probe)
	Expect(err).NotTo(HaveOccurred())
	report, err := overlap.Check(records)
	Expect(err).NotTo(HaveOccurred(), "%v", report)
}

// dump shows what there is to see when a spec failed.
func (w *workload) dump(ctx context.Context) {
	if owner, err := w.store.GetOwner(ctx, w.ref); err == nil {
		GinkgoWriter.Printf("owner: count %d, annotations %v\n", owner.Count, owner.Annotations)
	}
	pods, err := w.Pods(ctx, w.ref.Name)
	if err != nil {
		return
	}
	for _, pod := range pods {
		id, err := w.identity(ctx, pod)
		GinkgoWriter.Printf("pod %s: %s, terminating %t, says %v (%v), annotations %v\n", pod.Name, pod.Status.Phase, pod.DeletionTimestamp != nil, id, err, pod.Annotations)
		for _, container := range []string{"init", "idalloc"} {
			if log, err := os.ReadFile(env.Node.Logs(w.Name, pod.Name, container)); err == nil && len(pods) <= 10 {
				GinkgoWriter.Printf("%s\n", log)
			}
		}
	}
}
