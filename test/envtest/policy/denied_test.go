package policy

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// neighbour is an account that RBAC permits the same as suite.Account, and that has no mark.
const neighbour = "neighbour"

// workloadNames are the workloads that the specs of this file write to, of each kind.
func workloadNames() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		deployments: theDeployment,
		{Group: "apps", Version: "v1", Resource: "statefulsets"}: "statefulset",
		{Group: "apps", Version: "v1", Resource: "replicasets"}:  "replicaset",
		{Group: "batch", Version: "v1", Resource: "jobs"}:        "job",
	}
}

// wide permits far more than idalloc needs, so that what is refused is refused by the policy. Workloads are named: the policy asks for it.
func wide() []rbacv1.PolicyRule {
	names := []string{theDeployment, "statefulset", "replicaset", "job"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps", "batch"}, Resources: []string{"*"}, ResourceNames: names, Verbs: []string{"get", patchVerb, updateVerb, "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{deployments.Resource}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/eviction", "pods/exec", "pods/ephemeralcontainers"}, Verbs: []string{"get", patchVerb, updateVerb, "delete", "create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", patchVerb, updateVerb, "delete", "create"}},
	}
}

// scene is a namespace with workloads of each kind, and an account in each role.
type scene struct {
	ns *suite.Namespace
	// uid is that of the Deployment.
	uid types.UID
	// own is the pod whose token marked has, another one a pod of the same workload.
	own, another corev1.Pod
	marked       actor
	// copied has the token of another, noPod one that names no pod.
	copied, noPod actor
	// unmarked is the neighbour.
	unmarked actor
}

// keep gives an object something of everything that idalloc must not touch.
const keep = `{"metadata":{"labels":{"example.com/keep":"me"},"annotations":{"example.com/keep":"me"},"finalizers":["example.com/keep"]}}`

func newScene(ctx context.Context) *scene {
	GinkgoHelper()
	ns, err := env.NewNamespace(ctx, append(wide(), mark())...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	Expect(ns.Grant(ctx, neighbour, wide()...)).To(Succeed())
	spec := suite.PodSpec(idle())
	Expect(ns.Create(ctx, suite.Deployment(theDeployment, 2, spec), suite.StatefulSet("statefulset", 0, spec),
		suite.ReplicaSet("replicaset", 0, spec), suite.Job("job", 0, spec))).To(Succeed())
	found := somePods(ctx, ns, theDeployment, 2)
	s := &scene{ns: ns, own: found[0], another: found[1]}
	s.marked, s.copied = in(ctx, &s.own), in(ctx, &s.another)
	s.noPod, s.unmarked = withoutPod(ctx, ns.Name, suite.Account), withoutPod(ctx, ns.Name, neighbour)
	deployment, err := env.Client.AppsV1().Deployments(ns.Name).Get(ctx, theDeployment, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	s.uid = deployment.UID
	s.prepare(ctx)
	for resource, name := range workloadNames() {
		s.marked.limited(ctx, resource, name)
		s.unmarked.free(ctx, resource, name)
	}
	return s
}

// prepare has another client write to all objects, by server-side apply, too.
func (s *scene) prepare(ctx context.Context) {
	GinkgoHelper()
	admin := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic
	objects := workloadNames()
	objects[pods] = s.own.Name
	for resource, name := range objects {
		object, err := admin.Resource(resource).Namespace(s.ns.Name).Patch(ctx, name, types.MergePatchType, []byte(keep), metav1.PatchOptions{FieldManager: "another"})
		Expect(err).NotTo(HaveOccurred())
		applied := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"labels":{"example.com/applied":"yes"}}}`, object.GetAPIVersion(), object.GetKind(), name)
		_, err = admin.Resource(resource).Namespace(s.ns.Name).Patch(ctx, name, types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "gitops"})
		Expect(err).NotTo(HaveOccurred())
	}
}

// refused expects that an actor's request is refused with a sentence that has all of these parts, and that the same
// request of the neighbour is accepted: so it is a request that works, and that RBAC permits.
func (s *scene) refused(ctx context.Context, by actor, request request, parts ...string) {
	GinkgoHelper()
	Expect(request(ctx, s.unmarked)).To(Succeed(), "the same request without the mark")
	err := request(ctx, by)
	Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	for _, part := range append(parts, "ValidatingAdmissionPolicy 'idalloc") {
		Expect(err).To(MatchError(ContainSubstring(part)))
	}
}

// account makes an account, and returns a pod of it, and who acts with the pod's token. It may change pods, and the policy limits it.
func (s *scene) account(ctx context.Context, name string, rules ...rbacv1.PolicyRule) (corev1.Pod, actor) {
	GinkgoHelper()
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{pods.Resource}, Verbs: []string{"get", patchVerb}})
	Expect(s.ns.Grant(ctx, name, rules...)).To(Succeed())
	spec := suite.PodSpec(idle())
	spec.ServiceAccountName = name
	Expect(s.ns.Create(ctx, suite.Pod(name, spec))).To(Succeed())
	pod := somePods(ctx, s.ns, name, 1)[0]
	a := in(ctx, &pod)
	a.limited(ctx, pods, pod.Name)
	return pod, a
}

// writes permits to patch these Deployments.
func writes(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{deployments.Resource}, ResourceNames: names, Verbs: []string{"get", patchVerb}}
}

// foreign are changes of an object that are none of idalloc's, as merge patches, and what the sentence names.
func foreign() map[string][]string {
	return map[string][]string{
		`{"metadata":{"labels":{"example.com/new":"x"}}}`:                                        {"label example.com/new of", "use another account"},
		`{"metadata":{"labels":{"example.com/keep":"x"}}}`:                                       {"label example.com/keep of"},
		`{"metadata":{"labels":{"example.com/keep":null}}}`:                                      {"label example.com/keep of"},
		`{"metadata":{"annotations":{"example.com/new":"x"}}}`:                                   {"idalloc annotations, and not example.com/new of", "use another account"},
		`{"metadata":{"annotations":{"example.com/keep":"x"}}}`:                                  {"idalloc annotations, and not example.com/keep of"},
		`{"metadata":{"annotations":{"example.com/keep":null}}}`:                                 {"idalloc annotations, and not example.com/keep of"},
		`{"metadata":{"annotations":null}}`:                                                      {"may only change idalloc annotations"},
		`{"metadata":{"labels":null,"annotations":{"idalloc.dev/assignment":"1"}}}`:              {"may not change label "},
		`{"metadata":{"annotations":{"idalloc.dev/partition-count":"4"}}}`:                       {"idalloc annotations, and not idalloc.dev/partition-count of"},
		`{"metadata":{"annotations":{"idalloc.dev/partition-strategy":"range"}}}`:                {"idalloc annotations, and not idalloc.dev/partition-strategy of"},
		`{"metadata":{"annotations":{"idalloc.dev/partition-failover-after":"1s"}}}`:             {"idalloc annotations, and not idalloc.dev/partition-failover-after of"},
		`{"metadata":{"annotations":{"idalloc.dev/partition-give-back-after":"1s"}}}`:            {"idalloc annotations, and not idalloc.dev/partition-give-back-after of"},
		`{"metadata":{"annotations":{"idalloc.dev/partition-target":"{}"}}}`:                     {"idalloc.dev/partition-target of"},
		`{"metadata":{"finalizers":["example.com/keep","example.com/new"]}}`:                     {"may not change the finalizers of", "use another account"},
		`{"metadata":{"finalizers":null}}`:                                                       {"may not change the finalizers of"},
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"1"}]}}`: {"may not change the ownerReferences of", "use another account"},
		`{"metadata":{"generateName":"new-"}}`:                                                   {"may not change the generateName of"},
		`{"metadata":{"managedFields":[{}]}}`:                                                    {"managedFields of", "use another account"},
	}
}

var _ = Describe("a marked account", Ordered, func() {
	var s *scene
	BeforeAll(func(ctx SpecContext) { s = newScene(ctx) })

	for resource, name := range workloadNames() {
		scale, count := name != "job", "replicas"
		if !scale {
			count = "parallelism"
		}
		Context("on a "+name, func() {
			for patch, says := range foreign() {
				It("may not send "+patch, func(ctx SpecContext) {
					s.refused(ctx, s.marked, merges(resource, name, patch), append(says, resource.Resource+" "+name)...)
				})
			}

			It("may not change the spec", func(ctx SpecContext) {
				patch := fmt.Sprintf(`{"spec":{%q:7}}`, count)
				s.refused(ctx, s.marked, merges(resource, name, patch), "may not change the spec of "+resource.Resource+" "+name, "use another account")
				s.refused(ctx, s.marked, func(ctx context.Context, a actor) error {
					return a.replace(ctx, resource, name, func(o *unstructured.Unstructured) {
						Expect(unstructured.SetNestedField(o.Object, int64(7), "spec", count)).To(Succeed())
					})
				}, "may not change the spec of")
			})

			if scale {
				It("may not change the template and the scale", func(ctx SpecContext) {
					s.refused(ctx, s.marked, patches(types.StrategicMergePatchType, resource, name, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/evil"}]}}}}`), "may not change the spec of")
					s.refused(ctx, s.marked, merges(resource, name, `{"spec":{"replicas":7}}`, "scale"), "UPDATE of "+resource.Resource+"/scale "+name, "may only update workloads and pods themselves", "use another account")
				})
			}

			It("may not change the status, and may not delete it", func(ctx SpecContext) {
				s.refused(ctx, s.marked, merges(resource, name, `{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`, "status"), "UPDATE of "+resource.Resource+"/status "+name)
				s.refused(ctx, s.marked, removes(resource, name), "DELETE of "+resource.Resource+" "+name)
			})

			It("may write each of idalloc's keys, and remove it", func(ctx SpecContext) {
				for _, key := range assignment.Keys() {
					Expect(s.marked.merge(ctx, resource, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, key))).To(Succeed(), key)
					Expect(s.marked.merge(ctx, resource, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key))).To(Succeed(), key)
				}
			})

			It("may write nothing with a token that names no pod", func(ctx SpecContext) {
				s.refused(ctx, s.noPod, merges(resource, name, `{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`), "names no pod", "mount a token into the pod")
			})
		})
	}

	Context("on its own pod", func() {
		for patch, says := range foreign() {
			It("may not send "+patch, func(ctx SpecContext) {
				s.refused(ctx, s.marked, merges(pods, s.own.Name, patch), append(says, "pods "+s.own.Name)...)
			})
		}

		It("may not let go of its controller", func(ctx SpecContext) {
			s.refused(ctx, s.marked, patches(types.JSONPatchType, pods, s.own.Name, `[{"op":"remove","path":"/metadata/ownerReferences"}]`), "may not change the ownerReferences of pods "+s.own.Name)
		})

		It("may not delete or evict it", func(ctx SpecContext) {
			s.refused(ctx, s.marked, removes(pods, s.own.Name), "DELETE of pods "+s.own.Name)
			s.refused(ctx, s.marked, func(ctx context.Context, a actor) error {
				return a.create(ctx, pods, object("policy/v1", "Eviction", s.own.Name, nil), "eviction")
			}, "CREATE of pods/eviction "+s.own.Name)
		})

		It("may write idalloc's keys, and remove them", func(ctx SpecContext) {
			Expect(s.marked.merge(ctx, pods, s.own.Name, `{"metadata":{"labels":{"idalloc.dev/instance-id":null,"idalloc.dev/owner":null},"annotations":{"idalloc.dev/receipt":null,"controller.kubernetes.io/pod-deletion-cost":"1"}}}`)).To(Succeed())
		})
	})

	It("may not write a receipt on another pod, nor by another pod's token or one that names none", func(ctx SpecContext) {
		empty := func(pod corev1.Pod) request {
			return merges(pods, pod.Name, `{"metadata":{"annotations":{"idalloc.dev/receipt":"{}"}}}`)
		}
		refuses := func(token, on corev1.Pod) string {
			return fmt.Sprintf("the token is that of pod %s with UID %s, so it may not update pod %s with UID %s: use the token of the pod itself", token.Name, token.UID, on.Name, on.UID)
		}
		s.refused(ctx, s.marked, empty(s.another), refuses(s.own, s.another))
		s.refused(ctx, s.copied, empty(s.own), refuses(s.another, s.own))
		s.refused(ctx, s.noPod, empty(s.own), "names no pod", "mount a token into the pod")
		Expect(says(s.another, "Deployment/deployment", "deployment.deployment")(ctx, s.copied)).To(Succeed(), "the other pod's token on the other pod")
	})

	It("may take idalloc's keys back from a client that applied them", func(ctx SpecContext) {
		for resource, applied := range map[schema.GroupVersionResource]string{
			deployments: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"deployment","annotations":{"idalloc.dev/assignment":"5"}}}`,
			pods:        fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"idalloc.dev/owner":"x"}}}`, s.own.Name),
		} {
			name := s.own.Name
			if resource == deployments {
				name = theDeployment
			}
			admin := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(resource).Namespace(s.ns.Name)
			_, err := admin.Patch(ctx, name, types.ApplyPatchType, []byte(applied), metav1.PatchOptions{FieldManager: "another-gitops"})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(s.marked.merge(ctx, deployments, theDeployment, `{"metadata":{"annotations":{"idalloc.dev/assignment":"6"}}}`)).To(Succeed())
		Expect(says(s.own, "Deployment/deployment", "deployment.deployment")(ctx, s.marked)).To(Succeed())
	})

	It("may not clear managedFields, also where no client uses server-side apply", func(ctx SpecContext) {
		s.refused(ctx, s.copied, merges(pods, s.another.Name, `{"metadata":{"managedFields":[{}]}}`), "managedFields of pods "+s.another.Name)
	})

	It("may write no Lease and tell of no workload if its Role permits to patch all", func(ctx SpecContext) {
		all := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{deployments.Resource}, Verbs: []string{patchVerb}}
		leases := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "delete", updateVerb}}
		pod, a := s.account(ctx, "all", mark(), writes(theDeployment), all, leases, tells())
		Expect(creates(s.lease(pod))(ctx, a)).To(MatchError(ContainSubstring("name its own workload in the resourceNames")))
		Expect(leaves(s.aboutDeployment("other"))(ctx, a)).To(MatchError(ContainSubstring("permits to patch by resourceNames")))
		Expect(leaves(s.aboutPod(pod))(ctx, a)).To(Succeed())
	}, SpecTimeout(patience))

	DescribeTable("may not write at all if its Role permits to write all workloads by", func(ctx SpecContext, verb string) {
		pod, a := s.account(ctx, "all-by-"+verb, mark(), writes(theDeployment), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{deployments.Resource}, Verbs: []string{verb}})
		for _, request := range []request{
			merges(deployments, theDeployment, `{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`),
			says(pod, "Deployment/deployment", "deployment.deployment"),
		} {
			s.refused(ctx, a, request, "permits it to write all deployments of the namespace", "name its own workload in the resourceNames")
		}
	},
		Entry("a patch", patchVerb, SpecTimeout(patience)),
		Entry("an update", updateVerb, SpecTimeout(patience)),
	)
})
