package allocation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// result is what a run of the command left.
type result struct {
	Code           int
	Stdout, Stderr string
}

// idalloc runs the command as a person would from a shell, with the service account's permissions
// for a pod, or the administrator's.
func (w *workload) idalloc(ctx context.Context, pod string, args ...string) result {
	GinkgoHelper()
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + GinkgoT().TempDir()}
	var kubeconfig string
	var err error
	if pod == "" {
		kubeconfig, err = env.ControlPlane.Kubeconfig(controlplane.Admin)
	} else {
		environment = append(environment, "POD_NAME="+pod, "POD_NAMESPACE="+w.Name)
		config, cerr := w.Config(ctx)
		Expect(cerr).NotTo(HaveOccurred())
		kubeconfig, err = env.ControlPlane.WriteKubeconfig(w.Name, config)
	}
	Expect(err).NotTo(HaveOccurred())
	return called(ctx, env.Binary, append(environment, "KUBECONFIG="+kubeconfig), args...)
}

// called runs a program to its end.
func called(ctx context.Context, program string, environment []string, args ...string) result {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // what is under test
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, environment
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Fail(err.Error())
	}
	return result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

var _ = Describe("the command", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, kinds.Deployment) })

	It("claims from a shell and publishes files", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		dir := filepath.Join(GinkgoT().TempDir(), "ids")
		Expect(w.idalloc(ctx, pod, "init", "--dir", dir, "--timeout", "1m")).To(HaveField("Code", 0))
		id, err := identity.Read(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(id).To(HaveField("ID", 0))
		Expect(id.Owner).To(Equal(identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"}))
		for file, want := range map[string]string{"id": "0\n", "count": "1\n", "state": "assigned\n", "token": fmt.Sprintf("%d\n", id.Token)} {
			Expect(os.ReadFile(filepath.Join(dir, file))).To(BeEquivalentTo(want)) //nolint:gosec // a directory of the test
		}
		out, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, "worker", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Annotations).To(HaveKeyWithValue(assignment.Key, fmt.Sprintf(`{"0":%q}`, pod)))
	})

	It("exits 3 when there is no slot in time, and says why", Label(nightly), func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		Expect(w.idalloc(ctx, pod, "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0))
		w.patchPod(ctx, pod, `{"metadata":{"labels":{"app":"kept"}}}`) // keeps the only slot
		Eventually(func() []metav1.OwnerReference { return w.pod(ctx, pod).OwnerReferences }).WithContext(ctx).Should(BeEmpty())
		Expect(w.idalloc(ctx, pod, "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0), "its ReplicaSet let go of it, its receipt still names the owner")
		other := w.somePods(ctx, 1)[0].Name
		got := w.idalloc(ctx, other, "init", "--dir", GinkgoT().TempDir(), "--timeout", "10s")
		Expect(got.Code).To(Equal(3), got.Stderr)
		Expect(got.Stderr).To(ContainSubstring("Deployment/worker has count 1"))
	})

	It("exits 1 with a sentence that helps", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Pod("alone", suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))))).To(Succeed())
		for _, tc := range []struct{ pod, says string }{
			{"alone", "run it from a Deployment"},
			{"no-such-pod", "set POD_NAME and POD_NAMESPACE"},
		} {
			got := w.idalloc(ctx, tc.pod, "init", "--dir", GinkgoT().TempDir())
			Expect(got.Code).To(Equal(1), got.Stderr)
			Expect(got.Stderr).To(ContainSubstring(tc.says))
		}
		got := w.idalloc(ctx, "", "get", "deployment/none", "-n", w.Name)
		Expect(got.Code).To(Equal(1))
		Expect(got.Stderr).To(ContainSubstring(`"none"`))
	})

	It("shows the slots, and frees those of the dead", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		held := w.settled(ctx, 3)
		var view struct {
			Slots []struct {
				ID    int    `json:"id"`
				Pod   string `json:"pod"`
				State string `json:"state"`
			} `json:"slots"`
		}
		got := w.idalloc(ctx, "", "get", "deploy/worker", "-n", w.Name, "-o", "json")
		Expect(got.Code).To(BeZero(), got.Stderr)
		Expect(json.Unmarshal([]byte(got.Stdout), &view)).To(Succeed())
		Expect(view.Slots).To(HaveLen(3))
		for _, slot := range view.Slots {
			Expect(slot.State).To(Equal("held"))
			Expect(held).To(HaveKeyWithValue(slot.ID, slot.Pod))
		}
		got = w.idalloc(ctx, "", "get", "deployment.apps/worker", "-n", w.Name)
		Expect(strings.Split(strings.TrimSpace(got.Stdout), "\n")).To(HaveLen(4))
		Expect(got.Stdout).To(HavePrefix("ID "))
		Expect(w.idalloc(ctx, "", "gc", "deploy/worker", "-n", w.Name).Stdout).To(ContainSubstring("no dead holders"))

		By("taking the permissions away, so that only gc can free the slots")
		config, err := w.Config(ctx)
		Expect(err).NotTo(HaveOccurred())
		client, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Client.RbacV1().RoleBindings(w.Name).Delete(ctx, suite.Account, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error {
			_, err := client.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).Should(Satisfy(apierrors.IsForbidden))
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, held[1], metav1.DeleteOptions{})).To(Succeed())
		Expect(env.Node.Evict(ctx, w.Name, held[2])).To(Succeed())
		Eventually(func(g Gomega) {
			got := w.idalloc(ctx, "", "gc", "deploy/worker", "-n", w.Name, "--dry-run")
			g.Expect(got.Code).To(BeZero())
			g.Expect(got.Stdout).To(ContainSubstring("would free slot 1 of " + held[1] + ": Deployment/worker: its pod is gone"))
			g.Expect(got.Stdout).To(ContainSubstring("would free slot 2 of " + held[2] + ": Deployment/worker: its pod is Failed (Evicted)"))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.assignment(ctx)).To(HaveLen(3), "a dry run changes nothing")
		Expect(w.idalloc(ctx, "", "get", "deploy/worker", "-n", w.Name).Stdout).To(ContainSubstring("dead"))
		Expect(w.idalloc(ctx, "", "gc", "deploy/worker", "-n", w.Name).Stdout).To(ContainSubstring("freed slot 1 of " + held[1]))
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{0: held[0]}))
	})
})

var _ = Describe("a missing permission", func() {
	DescribeTable("ends with exit code 4, the verb and the resource", func(ctx SpecContext, group, resource, verb string) {
		var rules []rbacv1.PolicyRule
		for _, rule := range suite.Rules() {
			for _, r := range rule.Resources {
				for _, v := range rule.Verbs {
					if r != resource || v != verb {
						rules = append(rules, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{r}, Verbs: []string{v}})
					}
				}
			}
		}
		ns, err := env.NewNamespace(ctx, rules...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		w := &workload{Namespace: ns, ref: kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: ns.Name, Name: "worker"}}
		pods := w.idle(ctx, 1)
		// A slot is taken by a pod that was relabelled, so that this one has to wait and watch.
		if verb == "watch" {
			s, err := store.New(env.ControlPlane.Config(), clock.RealClock{})
			Expect(err).NotTo(HaveOccurred())
			admin := &workload{Namespace: ns, ref: w.ref, store: s}
			admin.fill(ctx, pods[0])
			pods = w.somePods(ctx, 1)
		}
		got := w.idalloc(ctx, pods[0].Name, "init", "--dir", GinkgoT().TempDir(), "--timeout", "60s")
		Expect(got.Code).To(Equal(4), got.Stderr)
		Expect(got.Stderr).To(And(ContainSubstring(fmt.Sprintf("add verb %q on resource %q of API group %q", verb, resource, group))))
	},
		Entry("to read its ReplicaSet", Label(nightly), "apps", "replicasets", "get"),
		Entry("to read its pod", Label(nightly), "", "pods", "get"),
		Entry("to list pods", Label(nightly), "", "pods", "list"),
		Entry("to watch pods", Label(nightly), "", "pods", "watch"),
		Entry("to write the owner", "apps", "deployments", "patch"),
		Entry("to write its pod", Label(nightly), "", "pods", "patch"),
		Entry("to watch the owner", Label(nightly), "apps", "deployments", "watch"),
	)
})

// fill lets a pod keep the only slot under other labels.
func (w *workload) fill(ctx context.Context, pod corev1.Pod) {
	GinkgoHelper()
	lock := receipt.Receipt{UID: string(pod.UID), Owner: w.ref.String(), State: receipt.Locks, Share: receipt.Share{ID: 0}, Write: receipt.Draw()}
	w.patchPod(ctx, pod.Name, mustJSON(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{receipt.Key: lock.Encode()},
		"labels":      map[string]string{"app": "kept", receipt.IDLabel: "0", receipt.OwnerLabel: assignment.OwnerLabelValue(w.ref.String())},
	}}))
}
