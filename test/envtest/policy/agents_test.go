package policy

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// agent makes a pod for which the controller plans, whose account has the Role of config/agent and these rules, and returns who acts with its token.
func (s *scene) agent(ctx context.Context, name string, rules ...rbacv1.PolicyRule) (corev1.Pod, actor) {
	GinkgoHelper()
	Expect(s.ns.Grant(ctx, name, append(rules, specs.Manifest[*rbacv1.Role]("config/agent/role.yaml").Rules...)...)).To(Succeed())
	spec := suite.PodSpec(idle())
	spec.ServiceAccountName = name
	pod := suite.Pod(name, spec)
	pod.Labels[receipt.AssignLabel] = receipt.ByAgent
	pod.OwnerReferences = s.controlled()
	Expect(s.ns.Create(ctx, pod)).To(Succeed())
	made := somePods(ctx, s.ns, name, 1)[0]
	a := in(ctx, &made)
	a.limited(ctx, pods, made.Name)
	return made, a
}

// controlled has the Deployment control a pod.
func (s *scene) controlled() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: theDeployment, UID: s.uid, Controller: new(true)}}
}

// proposed has the controller name the owner of a pod.
func (s *scene) proposed(ctx context.Context, pod corev1.Pod, p receipt.Proposal) {
	GinkgoHelper()
	s.proposedText(ctx, pod, p.Encode())
}

func (s *scene) proposedText(ctx context.Context, pod corev1.Pod, text string) {
	GinkgoHelper()
	_, err := asController(s.ns.Name).dynamic.Resource(pods).Namespace(s.ns.Name).Patch(ctx, pod.Name, types.MergePatchType,
		annotations(map[string]string{receipt.ProposalKey: text}), metav1.PatchOptions{FieldManager: assignment.FieldManager})
	Expect(err).NotTo(HaveOccurred())
}

// asController acts by the account of idalloc-controller, which RBAC lets do everything here.
func asController(namespace string) actor {
	GinkgoHelper()
	config := env.ControlPlane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:idalloc-system:idalloc-controller", Groups: []string{"system:masters"}}
	return newActor(namespace, config)
}

// proposes is what the controller writes on a pod that gets slot 0.
func proposes(pod corev1.Pod, kind, name string) receipt.Proposal {
	apiVersion := "apps/v1"
	switch kind {
	case "Job":
		apiVersion = "batch/v1"
	case "Rollout":
		apiVersion = "argoproj.io/v1alpha1"
	}
	return receipt.Proposal{UID: string(pod.UID), Owner: identity.Owner{APIVersion: apiVersion, Kind: kind, Name: name}, Count: 3, Share: receipt.Share{ID: 0}}
}

var _ = Describe("a marked account of an agent", Ordered, func() {
	var s *scene
	BeforeAll(func(ctx SpecContext) { s = newScene(ctx) })

	It("may name the owner that the controller wrote, of whatever kind, and its Role names none", func(ctx SpecContext) {
		pod, a := s.agent(ctx, "agent-own")
		for owner, label := range map[string]string{
			"Deployment/deployment": "deployment.deployment", "Job/x": "job.x", "Rollout.argoproj.io/canary.v2": "rollout.argoproj.io.canary.v2",
		} {
			kind, name, _ := strings.Cut(owner, "/")
			kind, _, _ = strings.Cut(kind, ".")
			s.proposed(ctx, pod, proposes(pod, kind, name))
			Expect(says(pod, owner, label)(ctx, a)).To(Succeed(), owner)
			Expect(says(pod, owner, "")(ctx, a)).To(Succeed(), "it waits for a slot of "+owner)
		}
		err := a.merge(ctx, deployments, theDeployment, `{"metadata":{"annotations":{"idalloc.dev/assignment":"{}"}}}`)
		Expect(err).To(MatchError(ContainSubstring("cannot patch resource")), "RBAC permits it no workload")
	})

	It("may name no other one, not even one that its Role permits to patch", func(ctx SpecContext) {
		pod, a := s.agent(ctx, "agent-other", writes(theDeployment))
		const own, label = "Deployment/deployment", "deployment.deployment"
		s.refused(ctx, a, says(pod, own, label), "the receipt of pods "+pod.Name, "annotation idalloc.dev/proposal of the pod names (none)")
		for name, text := range map[string]string{
			"the proposal of another pod": proposes(s.own, "Deployment", theDeployment).Encode(),
			"no proposal":                 "{}",
			"another form":                `{"owner":{"kind":"Deployment","name":"deployment"},"uid":"` + string(pod.UID) + `"}`,
		} {
			By(name)
			s.proposedText(ctx, pod, text)
			s.refused(ctx, a, says(pod, own, label), "proposal of the pod names (none)")
		}
		s.proposed(ctx, pod, proposes(pod, "Deployment", "other"))
		s.refused(ctx, a, says(pod, own, label), "proposal of the pod names (Deployment/other)")
		s.refused(ctx, a, says(pod, "Deployment/other", label), "proposal of the pod names (Deployment/other)")
		Expect(says(pod, "Deployment/other", "deployment.other")(ctx, a)).To(Succeed())
		s.proposed(ctx, pod, proposes(pod, "Rollout", "other"))
		s.refused(ctx, a, says(pod, "Rollout/other", "rollout.other"), "proposal of the pod names (Rollout.argoproj.io/other)")
	})

	It("may name the owner of the receipt that it replaces, so that it can give up what it has of a former owner", func(ctx SpecContext) {
		pod, a := s.agent(ctx, "agent-moved")
		s.proposed(ctx, pod, proposes(pod, "Deployment", theDeployment))
		locks := receipt.Receipt{UID: string(pod.UID), Owner: "Deployment/deployment", State: receipt.Locks, Write: receipt.Draw()}
		_, err := a.dynamic.Resource(pods).Namespace(s.ns.Name).Patch(ctx, pod.Name, types.MergePatchType, mustJSON(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{receipt.Key: locks.Encode()}, Labels: map[string]string{receipt.OwnerLabel: "deployment.deployment", receipt.IDLabel: "0"},
		}}), metav1.PatchOptions{FieldManager: assignment.FieldManager})
		Expect(err).NotTo(HaveOccurred())
		s.proposed(ctx, pod, proposes(pod, "ReplicaSet", "replicaset"))
		gives := merges(pods, pod.Name, string(mustJSON(map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{receipt.Key: receipt.Receipt{UID: string(pod.UID), Owner: "Deployment/deployment", State: receipt.GaveUp, Write: receipt.Draw()}.Encode()},
			"labels":      map[string]any{receipt.OwnerLabel: nil, receipt.IDLabel: nil},
		}})))
		Expect(gives(ctx, a)).To(Succeed())
		Expect(says(pod, "ReplicaSet/replicaset", "replicaset.replicaset")(ctx, a)).To(Succeed())
		s.refused(ctx, a, says(pod, "Deployment/other", "deployment.other"), "names (ReplicaSet/replicaset), or the one that its receipt names now (Deployment/deployment)")
	})

	It("may have a hash for a label if its Role names the hash", func(ctx SpecContext) {
		name := strings.Repeat("a", 60)
		hash := assignment.OwnerLabelValue("Deployment/" + name)
		pod, a := s.agent(ctx, "agent-hash", locks(hash))
		s.proposed(ctx, pod, proposes(pod, "Deployment", name))
		Expect(says(pod, "Deployment/"+name, hash)(ctx, a)).To(Succeed())
		another := strings.Repeat("b", 40)
		s.refused(ctx, a, says(pod, "Deployment/"+name, another), "the verb lock on slots.idalloc.dev with resourceNames ["+another+"]")
	})

	It("may not write what the controller proposes, nor the label that says who plans", func(ctx SpecContext) {
		pod, a := s.agent(ctx, "agent-proposal")
		s.proposed(ctx, pod, proposes(pod, "Deployment", theDeployment))
		for _, patch := range []string{`{"metadata":{"annotations":{"idalloc.dev/proposal":"{}"}}}`, `{"metadata":{"annotations":{"idalloc.dev/proposal":null}}}`} {
			others := ContainSubstring("only idalloc-controller changes idalloc.dev/proposal") // of two policies that refuse, either may answer
			Expect(merges(pods, pod.Name, patch)(ctx, a)).To(MatchError(Or(ContainSubstring("and not idalloc.dev/proposal of pods "+pod.Name), others)))
			Expect(merges(pods, pod.Name, patch)(ctx, s.unmarked)).To(MatchError(others))
		}
		s.refused(ctx, s.marked, merges(pods, s.own.Name, `{"metadata":{"annotations":{"idalloc.dev/proposal":"{}"}}}`), "and not idalloc.dev/proposal of pods "+s.own.Name)
		Expect(merges(pods, pod.Name, `{"metadata":{"labels":{"idalloc.dev/assign":null}}}`)(ctx, a)).To(MatchError(Or(
			ContainSubstring("may not change label idalloc.dev/assign of pods "+pod.Name), ContainSubstring("only idalloc-controller changes idalloc.dev/assign"))))
		s.refused(ctx, s.marked, says(pod, "Deployment/deployment", "deployment.deployment"), "use the token of the pod itself")
	})

	It("may write Leases of the workload whose label its Role names, and no others", func(ctx SpecContext) {
		pod, a := s.agent(ctx, "agent-strict", leases("get", "create"), locks("deployment.deployment"))
		Expect(creates(s.lease(pod))(ctx, a)).To(Succeed())
		s.refused(ctx, a, creates(s.lease(pod, of("Deployment/other"))), "does not name a workload that fits its label")
		pod, a = s.agent(ctx, "agent-without-lock", leases("get", "create"))
		s.refused(ctx, a, creates(s.lease(pod)), "does not name a workload that fits its label")
	})
})

// locks permits to lock slots of the workload with this label.
func locks(label string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, ResourceNames: []string{label}, Verbs: []string{"lock"}}
}
