package policy

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

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
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// workload is a namespace with one owner, whose pods run "idalloc run" with the Role of config/base, and with that of config/strict if they
// have flags of strict mode.
type workload struct {
	*suite.Namespace
	ref kinds.Ref
}

// newWorkload makes an owner without pods, and waits until the policy limits its account. Scale starts the pods.
func newWorkload(ctx context.Context, kind string, flags ...string) *workload {
	GinkgoHelper()
	rules := specs.Manifest[*rbacv1.Role]("config/base/role.yaml").Rules
	rules[0].Resources = []string{strings.ToLower(kind) + "s"}
	if kind == kinds.Job {
		rules[0].APIGroups = []string{"batch"}
	}
	if len(flags) > 0 {
		rules = append(rules, strictRule())
	}
	ns, err := env.NewNamespace(ctx, rules...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	ref, err := kinds.ParseRef(kind+"/worker", ns.Name)
	Expect(err).NotTo(HaveOccurred())
	w := &workload{Namespace: ns, ref: ref}
	spec := podSpec(flags...)
	switch kind {
	case kinds.Deployment:
		Expect(ns.Create(ctx, suite.Deployment("worker", 0, spec))).To(Succeed())
	case kinds.StatefulSet:
		Expect(ns.Create(ctx, suite.StatefulSet("worker", 0, spec))).To(Succeed())
	case kinds.ReplicaSet:
		Expect(ns.Create(ctx, suite.ReplicaSet("worker", 0, spec))).To(Succeed())
	case kinds.Job:
		job := suite.Job("worker", 0, spec)
		job.Spec.Completions = new(int32(4))
		Expect(ns.Create(ctx, job)).To(Succeed())
	}
	withoutPod(ctx, ns.Name, suite.Account).limited(ctx, ref.GVR(), ref.Name)
	return w
}

// podSpec has one container: a program under idalloc run. Work that has stopped can be handed over.
func podSpec(flags ...string) *corev1.PodSpec {
	const port = 8089
	command := append([]string{env.Binary, "run", fmt.Sprintf("--http-address=$(POD_IP):%d", port)}, flags...)
	c := suite.Container("idalloc", append(command, "--", "/bin/sleep", "100000")...)
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(port)}}}
	return suite.PodSpec(c)
}

func (w *workload) owner(ctx context.Context) (store.Owner, error) {
	s, err := store.New(env.ControlPlane.Config(), clock.RealClock{})
	if err != nil {
		return store.Owner{}, err
	}
	return s.GetOwner(ctx, w.ref)
}

// settled waits until n pods are Ready, there are no others, and a map that can be read has an id for each.
func (w *workload) settled(ctx context.Context, n int) assignment.Slots {
	GinkgoHelper()
	var slots assignment.Slots
	Eventually(func(g Gomega) {
		all, err := w.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		ready, err := w.ReadyPods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ready).To(And(HaveLen(n), HaveLen(len(all))))
		owner, err := w.owner(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owner.Record.Problems).To(BeEmpty())
		slots = owner.Record.State.Slots
		g.Expect(slots).To(HaveLen(n))
		for _, pod := range ready {
			id, has := slots.Of(pod.Name)
			g.Expect(has).To(BeTrue())
			g.Expect(pod.Labels).To(HaveKeyWithValue(receipt.IDLabel, strconv.Itoa(id)))
		}
	}).WithContext(ctx).Should(Succeed())
	return slots
}

// change patches the owner as another client would.
func (w *workload) change(ctx context.Context, kind types.PatchType, patch string) {
	GinkgoHelper()
	_, err := newActor(w.Name, env.ControlPlane.Config()).dynamic.Resource(w.ref.GVR()).Namespace(w.Name).Patch(ctx, "worker", kind, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	Expect(err).NotTo(HaveOccurred())
}

func (w *workload) damage(ctx context.Context) {
	GinkgoHelper()
	w.change(ctx, types.MergePatchType, `{"metadata":{"annotations":{"idalloc.dev/assignment":"damaged"}}}`)
}

var _ = Describe("idalloc under the policy", func() {
	DescribeTable("claims", func(ctx SpecContext, kind string) {
		w := newWorkload(ctx, kind)
		Expect(w.Scale(ctx, kind, "worker", 2)).To(Succeed())
		w.settled(ctx, 2)
	},
		Entry("for a StatefulSet", kinds.StatefulSet, SpecTimeout(patience)),
		Entry("for a ReplicaSet", kinds.ReplicaSet, SpecTimeout(patience)),
		Entry("for a Job", kinds.Job, SpecTimeout(patience)),
	)

	It("claims, follows a scale, restores, hands over, and is tidied by a person", func(ctx SpecContext) {
		w := newWorkload(ctx, kinds.Deployment)
		Expect(w.Scale(ctx, kinds.Deployment, "worker", 2)).To(Succeed())
		w.settled(ctx, 2)
		Expect(w.Scale(ctx, kinds.Deployment, "worker", 3)).To(Succeed())
		before := w.settled(ctx, 3)

		By("damage, which holders repair")
		w.damage(ctx)
		Expect(w.settled(ctx, 3)).To(Equal(before))

		By("a rolling update that may stop no pod: each slot must be handed over")
		w.change(ctx, types.StrategicMergePatchType, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},"template":{"metadata":{"annotations":{"example.com/restarted":"yes"}}}}}`)
		Eventually(func(g Gomega) {
			for id, pod := range w.settled(ctx, 3) {
				g.Expect(before[id]).NotTo(Equal(pod))
			}
		}).WithContext(ctx).Should(Succeed())

		By("no pods any more, and damage that a person repairs")
		Expect(w.Scale(ctx, kinds.Deployment, "worker", 0)).To(Succeed())
		somePods(ctx, w.Namespace, "worker", 0)
		w.damage(ctx)
		Expect(w.gc(ctx)).To(ContainSubstring("restored"))
		owner, err := w.owner(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(owner.Record.Problems).To(BeEmpty())
	})
})

// gc runs the command as a person who may do what docs/kubectl.md says that gc needs, and returns what it says.
func (w *workload) gc(ctx context.Context) string {
	GinkgoHelper()
	const person = "person"
	_, err := env.ControlPlane.AddUser(person)
	Expect(err).NotTo(HaveOccurred())
	w.allow(ctx, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: person},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{deployments.Resource}, Verbs: []string{"get", patchVerb}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	kubeconfig, err := env.ControlPlane.Kubeconfig(person)
	Expect(err).NotTo(HaveOccurred())
	var said []byte
	Eventually(func() error {
		cmd := exec.CommandContext(ctx, env.Binary, "gc", "deployment/worker", "-n", w.Name) //nolint:gosec // the command under test
		cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + GinkgoT().TempDir()}
		said, err = cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return err
	}).WithContext(ctx).Should(Succeed())
	return string(said)
}

// allow binds a Role of these rules.
func (w *workload) allow(ctx context.Context, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: "role-of-" + subject.Name}
	_, err := env.Client.RbacV1().Roles(w.Name).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: slices.Clone(rules)}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = env.Client.RbacV1().RoleBindings(w.Name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
