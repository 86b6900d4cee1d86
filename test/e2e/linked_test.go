//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/overlap"
)

// change is what a spec wants different from the example.
type change func(*appsv1.DeploymentSpec)

func rolling(surge, unavailable string) change {
	return func(s *appsv1.DeploymentSpec) {
		a, b := intstr.Parse(surge), intstr.Parse(unavailable)
		s.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &a, MaxUnavailable: &b}}
	}
}

func env(key, value string) change {
	return func(s *appsv1.DeploymentSpec) {
		c := &s.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: key, Value: value})
	}
}

// strictly turns strict mode on.
func strictly(s *appsv1.DeploymentSpec) { env("FENCE_AFTER", chaosFence)(s) }

// serverAt makes all containers reach the API server at this address.
func serverAt(host, port string) change {
	return func(s *appsv1.DeploymentSpec) {
		pod := &s.Template.Spec
		for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range list {
				list[i].Env = append(list[i].Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: host}, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: port})
			}
		}
	}
}

// prepare prepares n replicas of an example. Its checks run when the spec ends.
func prepare(ctx context.Context, e example, n int, changes ...change) *workload {
	GinkgoHelper()
	w := newWorkload(ctx, e)
	w.manifest.deployment.Spec.Replicas = new(int32(n)) //nolint:gosec // small
	for _, c := range changes {
		c(&w.manifest.deployment.Spec)
	}
	w.grantLeases()
	DeferCleanup(func(ctx SpecContext) { w.check(ctx) }, NodeTimeout(patience)) //nolint:contextcheck // a cleanup has a context of its own
	return w
}

// grantLeases adds what config/strict adds to the role of the example, if the workload is strict.
func (w *workload) grantLeases() {
	template := &w.manifest.deployment.Spec.Template
	strict := template.Annotations[fenceAfterKey] != "" || slices.ContainsFunc(template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
		return e.Name == "FENCE_AFTER" && e.Value != ""
	})
	if strict {
		w.manifest.role.Rules = append(w.manifest.role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"},
		})
	}
}

// startLinked starts n replicas of the linked example and waits until they hold their ids.
func startLinked(ctx context.Context, n int) (*workload, holders) {
	GinkgoHelper()
	w := prepare(ctx, linked, n)
	w.apply(ctx)
	h := w.held(ctx, n)
	return w, h
}

// check is for the end of a spec.
func (w *workload) check(ctx context.Context) {
	GinkgoHelper()
	failed := CurrentSpecReport().Failed()
	if failed {
		w.dump(ctx)
	}
	if !w.overlaps {
		w.expectNoOverlap()
	}
	if !failed {
		w.verify(ctx)
	}
}

// verify runs the command of that name.
func (w *workload) verify(ctx context.Context) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, os.Getenv("E2E_IDALLOC"), "verify", "deployment/"+name, "-n", w.namespace, "--wait=30s") //nolint:gosec // what hack/e2e built
	out, err := cmd.CombinedOutput()
	GinkgoWriter.Printf("idalloc verify: %s\n", out)
	Expect(err).NotTo(HaveOccurred(), "idalloc verify: %s", out)
}

// owner reads the Deployment as idalloc does.
func (w *workload) owner(ctx context.Context) (store.Owner, error) {
	s, err := store.New(config, clock.RealClock{})
	if err != nil {
		return store.Owner{}, err
	}
	ref, _ := kinds.NewRef("apps/v1", kinds.Deployment, w.namespace, name)
	return s.GetOwner(ctx, ref)
}

func (w *workload) restart(ctx context.Context) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "rollout", "restart", "deployment", name)).Error().NotTo(HaveOccurred())
}

func (w *workload) undo(ctx context.Context) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "rollout", "undo", "deployment", name)).Error().NotTo(HaveOccurred())
}

// others returns the pods that are not among these, by what their labels say they hold.
func (w *workload) others(ctx context.Context, g Gomega, h holders) (all []corev1.Pod, held holders) {
	pods, err := w.pods(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	held = holders{}
	for _, p := range pods {
		if h.id(p.Name) != overlap.None {
			continue
		}
		all = append(all, p)
		if label := p.Labels[idLabel]; label != "" {
			id, err := strconv.Atoi(label)
			g.Expect(err).NotTo(HaveOccurred())
			held[id] = p.Name
		}
	}
	return all, held
}
