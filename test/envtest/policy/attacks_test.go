package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// account is whose token a thief has. RBAC permits each of them all that is tried, so that what is refused is refused by a policy.
type account struct {
	name string
	actor
	// own is the pod whose token it is. The controller and people have none: for them it is a pod that waits behind the gate.
	own corev1.Pod
	// key is an annotation of workloads that the account may write.
	key string
}

// attack is one request of a thief. For each account it says a part of the sentence that refuses the request, or why the account may send it.
type attack struct {
	name                                           string
	by                                             func(account) request
	sidecar, agent, controller, autoscaler, person string
}

// theController is the account whose Lease has another name.
const theController = "controller"

// may begins what an account may do. The rest says why.
const may = "may: "

// theirs is why a person may send what only changes the own namespace's objects.
const theirs = may + "who edits a namespace writes its workloads"

// or stands between sentences of which the API server sends one: two policies refuse the request.
const or = " | "

// noRight says that RBAC refuses it to who edits a namespace.
const noRight = "cannot patch resource"

// all has the same policy refuse it to every account of idalloc.
func all(name string, by func(account) request, pods, controller string) attack {
	return attack{name, by, pods, pods, controller, pods, theirs}
}

func onDeployment(patch string, subresources ...string) func(account) request {
	return func(account) request { return merges(deployments, theDeployment, patch, subresources...) }
}

func onOwnPod(kind types.PatchType, patch string, subresources ...string) func(account) request {
	return func(a account) request { return patches(kind, pods, a.own.Name, patch, subresources...) }
}

const (
	large   = 200 << 10
	merge   = types.MergePatchType
	image   = `{"spec":{"containers":[{"name":"main","image":"example.com/evil"}]}}`
	finally = `{"metadata":{"finalizers":["example.com/new"]}}`
	orphans = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"1"}]}}`
)

func attacksOnWorkloads() []attack {
	return []attack{
		all("forge who manages fields of a workload", func(a account) request {
			return func(ctx context.Context, by actor) error {
				return by.replace(ctx, deployments, theDeployment, func(o *unstructured.Unstructured) {
					Expect(unstructured.SetNestedField(o.Object, "x", "metadata", "annotations", a.key)).To(Succeed())
					o.SetManagedFields(append(o.GetManagedFields(), entry(claimant, metav1.ManagedFieldsOperationApply, "apps/v1", `{"f:spec":{"f:replicas":{}}}`)))
				})
			}
		}, claimant+" (Apply)", claimant+" (Apply)"),
		all("clear who manages fields of a workload", onDeployment(`{"metadata":{"managedFields":[{}]}}`), "managedFields of deployments", "managedFields of deployments"),
		all("write a workload under another name", func(a account) request {
			return func(ctx context.Context, by actor) error {
				_, err := by.dynamic.Resource(deployments).Namespace(by.namespace).Patch(ctx, theDeployment, merge,
					annotations(map[string]string{a.key: "x"}), metav1.PatchOptions{FieldManager: claimant, DryRun: dryRun})
				return err
			}
		}, claimant+" (Update)", claimant+" (Update)"),
		all("change the number of replicas", onDeployment(`{"spec":{"replicas":7}}`), "may not change the spec of deployments", "may not change the spec of deployments"),
		all("change the image of a workload", func(account) request {
			return patches(types.StrategicMergePatchType, deployments, theDeployment, `{"spec":{"template":`+image+`}}`)
		}, "may not change the spec of deployments", "may not change the spec of deployments"),
		all("change a label of a workload", onDeployment(`{"metadata":{"labels":{"example.com/keep":"x"}}}`), "label example.com/keep", "and not example.com/keep of deployments"),
		all("change another annotation of a workload", onDeployment(`{"metadata":{"annotations":{"example.com/keep":"x"}}}`), "and not example.com/keep", "and not example.com/keep of deployments"),
		all("change how partitions are divided", onDeployment(`{"metadata":{"annotations":{"idalloc.dev/partition-count":"4"}}}`), "and not idalloc.dev/partition-count", "and not idalloc.dev/partition-count"),
		all("change the finalizers of a workload", onDeployment(finally), "finalizers", "finalizers"),
		all("change the ownerReferences of a workload", onDeployment(orphans), "ownerReferences", "ownerReferences"),
		all("change the generateName of a workload", onDeployment(`{"metadata":{"generateName":"new-"}}`), "generateName", "generateName"),
		all("fill the annotations of a workload", func(a account) request {
			return merges(deployments, theDeployment, string(annotations(map[string]string{a.key: strings.Repeat("x", large)})))
		}, "may write at most 66816", "may write at most 66816"),
		{
			"write the status of a workload", onDeployment(`{"metadata":{"annotations":{"idalloc.dev/assignment":"1"}}}`, "status"),
			"UPDATE of deployments/status", "UPDATE of deployments/status", "UPDATE of deployments/status", "UPDATE of deployments/status", noRight,
		},
		all("delete a workload", func(account) request { return removes(deployments, theDeployment) }, "DELETE of deployments", "DELETE of deployments"),
		{
			"scale a workload", onDeployment(`{"spec":{"replicas":7}}`, "scale"), "UPDATE of deployments/scale", "UPDATE of deployments/scale", "UPDATE of deployments/scale",
			may + "that is what it is for", theirs,
		},
		all("create a workload", func(account) request {
			return func(ctx context.Context, by actor) error {
				return by.create(ctx, deployments, object("apps/v1", "Deployment", "new", map[string]any{
					"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
					"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": aPod()},
				}))
			}
		}, "CREATE of deployments", "CREATE of deployments"),
	}
}

func aPod() map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
}

func attacksOnPods(s *scene, gated, agents corev1.Pod) []attack {
	const controllers = "only idalloc-controller changes"
	const token = "the token is that of pod" + or + "only idalloc-controller"
	evicts := func(a account) request {
		return func(ctx context.Context, by actor) error {
			o := object("policy/v1", "Eviction", a.own.Name, nil)
			o["deleteOptions"] = map[string]any{"gracePeriodSeconds": int64(0)}
			return by.create(ctx, pods, o, "eviction")
		}
	}
	executes := func(a account) request {
		return func(ctx context.Context, by actor) error {
			o := &unstructured.Unstructured{Object: object("v1", "PodExecOptions", a.own.Name, nil)}
			_, err := by.dynamic.Resource(pods).Namespace(by.namespace).Create(ctx, o, metav1.CreateOptions{}, "exec")
			return err
		}
	}
	idOn := func(pod corev1.Pod) func(account) request {
		return func(account) request {
			return merges(pods, pod.Name, `{"metadata":{"annotations":{"idalloc.dev/receipt":"{}","controller.kubernetes.io/pod-deletion-cost":"1"}}}`)
		}
	}
	return []attack{
		all("clear who manages fields of a pod", onOwnPod(merge, `{"metadata":{"managedFields":[{}]}}`), "managedFields of pods", "managedFields of pods"),
		all("let another program claim the spec of a pod", func(a account) request {
			return func(ctx context.Context, by actor) error {
				return by.replace(ctx, pods, a.own.Name, func(o *unstructured.Unstructured) {
					o.SetManagedFields(append(o.GetManagedFields(), entry(claimant, metav1.ManagedFieldsOperationApply, "v1", `{"f:spec":{"f:containers":{}}}`)))
				})
			}
		}, claimant+" (Apply)", claimant+" (Apply)"),
		all("change the image of a pod", onOwnPod(types.StrategicMergePatchType, image), "may not change the spec of pods", "may not change the spec of pods"),
		all("change a label of a pod", onOwnPod(merge, `{"metadata":{"labels":{"example.com/new":"x"}}}`), "label example.com/new", "and not example.com/new of pods"),
		all("change another annotation of a pod", onOwnPod(merge, `{"metadata":{"annotations":{"example.com/new":"x"}}}`), "and not example.com/new", "and not example.com/new of pods"),
		all("change the finalizers of a pod", onOwnPod(merge, finally), "finalizers of pods", "finalizers or ownerReferences of pods"),
		all("change the ownerReferences of a pod", onOwnPod(merge, orphans), "ownerReferences of pods", "finalizers or ownerReferences of pods"),
		{
			"say that another program writes the receipt", onOwnPod(merge, `{"metadata":{"labels":{"idalloc.dev/assign":"agent"}}}`),
			"label idalloc.dev/assign", may + "it changes nothing", "and not idalloc.dev/assign of pods", "label idalloc.dev/assign", controllers + " idalloc.dev/assign",
		},
		{
			"fill the annotations of a pod", onOwnPod(merge, string(annotations(map[string]string{receipt.Key: strings.Repeat("x", 66<<10)}))),
			"the receipt of pods", "the receipt of pods", "may write at most 65536", "the receipt of pods", controllers + " idalloc.dev/receipt",
		},
		{
			"write the status of a pod", onOwnPod(merge, `{"metadata":{"annotations":{"idalloc.dev/receipt":"{}"}}}`, "status"),
			"UPDATE of pods/status", "UPDATE of pods/status", "UPDATE of pods/status", "UPDATE of pods/status", noRight,
		},
		{"give an id to another pod", idOn(s.another), token, token, "has no label idalloc.dev/assign", token, theirs},
		{"give an id to a gated pod", idOn(gated), token, token, may + "that is what it is for", token, controllers + " idalloc.dev/receipt"},
		{
			"take the gate from a pod", func(account) request {
				return patches(types.JSONPatchType, pods, gated.Name, `[{"op":"remove","path":"/spec/schedulingGates"}]`)
			},
			token, token, may + "that is what it is for", token, "only idalloc-controller removes the scheduling gate",
		},
		{
			"propose something to an agent", func(account) request {
				return merges(pods, agents.Name, `{"metadata":{"annotations":{"idalloc.dev/proposal":"{}"}}}`)
			},
			token, "and not idalloc.dev/proposal" + or + controllers, may + "that is what it is for", token, controllers + " idalloc.dev/proposal",
		},
		{
			"write the receipt of an agent", idOn(agents), token, "the receipt of pods", "idalloc.dev/receipt", token,
			may + "the controller takes a receipt that cannot be read for what it confirmed",
		},
		all("evict a pod by force", evicts, "CREATE of pods/eviction", "may not set the grace period of pods/eviction"),
		{
			"delete a pod of another kind", func(account) request { return removes(pods, s.another.Name) }, "DELETE of pods", "DELETE of pods", "has no label idalloc.dev/assign",
			"DELETE of pods", theirs,
		},
		all("create a pod", func(account) request {
			return func(ctx context.Context, by actor) error {
				return by.create(ctx, pods, object("v1", "Pod", "new", aPod()))
			}
		}, "CREATE of pods", "CREATE of pods"),
		all("run a command in a pod", executes, "CONNECT of pods/exec", "CONNECT of pods/exec"),
		{
			"add a container to a pod", onOwnPod(types.StrategicMergePatchType, `{"spec":{"ephemeralContainers":[{"name":"debug","image":"example.com/evil"}]}}`, "ephemeralcontainers"),
			"UPDATE of pods/ephemeralcontainers", "UPDATE of pods/ephemeralcontainers", "UPDATE of pods/ephemeralcontainers", "UPDATE of pods/ephemeralcontainers", noRight,
		},
	}
}

func attacksOnOthers(s *scene) []attack {
	const edit = may + "who edits a namespace writes its Events and Leases"
	long := set(strings.Repeat("x", 1<<20), "message")
	foreign := other()
	filled := func(a account) request {
		o := s.lease(a.own)
		if a.name == theController {
			o.SetName("idalloc-controller")
		}
		o.SetAnnotations(map[string]string{"example.com/large": strings.Repeat("x", large)})
		return creates(o)
	}
	return []attack{
		{
			"write a large Event", func(a account) request { return leaves(s.aboutPod(a.own, long)) },
			"may write at most 4096", "may write at most 4096", "may write at most 4096", "may write at most 4096", edit,
		},
		{
			"tell of another pod", func(account) request { return leaves(s.aboutPod(s.another)) },
			"may only write Events about the pod", "may only write Events about the pod", may + "it tells of all pods, in few words", "may only write Events about the pod", edit,
		},
		{
			"delete an Event", func(account) request { return removes(events, "old") },
			"DELETE of an Event", "DELETE of an Event", "DELETE of events", "DELETE of an Event", edit,
		},
		{"write a large Lease", filled, "may write at most 73728", "may write at most 73728", "may write at most 4096", "may write at most 73728", edit},
		{
			"write the Lease of another program", func(account) request { return creates(foreign) },
			"only write Leases of its own workload", "only write Leases of its own workload", "may write no Lease but idalloc-controller", "only write Leases of its own workload", edit,
		},
	}
}

var _ = Describe("a thief of a token", Ordered, ContinueOnFailure, func() {
	var (
		s        *scene
		accounts []account
		table    []attack
	)
	BeforeAll(func(ctx SpecContext) {
		s = newScene(ctx)
		rules := append(wide(), tells())
		for i := range rules {
			rules[i].Verbs = append(rules[i].Verbs, "get")
		}
		sidecars, sidecar := s.account(ctx, "thief-of-sidecar", append(rules, mark())...)
		scales, autoscaler := s.account(ctx, "thief-of-autoscaler", append(rules, rbacv1.PolicyRule{APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, Verbs: []string{"scale"}})...)
		agents, agent := s.agent(ctx, "thief-of-agent", rules...)
		gated := suite.Pod("gated", suite.PodSpec(idle()))
		gated.Labels[receipt.AssignLabel], gated.OwnerReferences = receipt.ByController, s.controlled()
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: receipt.Gate}}
		Expect(s.ns.Create(ctx, gated)).To(Succeed())
		waits := somePods(ctx, s.ns, "gated", 1)[0]
		config, err := env.ControlPlane.AddUser("editor")
		Expect(err).NotTo(HaveOccurred())
		bindCluster(ctx, s.ns, "edit", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "editor"})
		person := newActor(s.ns.Name, config)
		person.free(ctx, deployments, theDeployment)
		old := s.aboutPod(s.another)
		old.SetName("old")
		_, err = newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(events).Namespace(s.ns.Name).Create(ctx, old, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		accounts = []account{
			{"sidecar", sidecar, sidecars, assignment.Key}, {"agent", agent, agents, assignment.Key}, {theController, asController(s.ns.Name), waits, assignment.Key},
			{"autoscaler", autoscaler, scales, assignment.PartitionTargetKey}, {"person", person, waits, assignment.Key},
		}
		table = append(append(attacksOnWorkloads(), attacksOnPods(s, waits, agents)...), attacksOnOthers(s)...)
	})

	It("may do what the table says of each account, and no more", func(ctx SpecContext) {
		var wrong []string
		for _, attack := range table {
			for i, want := range []string{attack.sidecar, attack.agent, attack.controller, attack.autoscaler, attack.person} {
				a := accounts[i]
				err := attack.by(a)(ctx, a.actor)
				switch why, permitted := strings.CutPrefix(want, may); {
				case permitted && err != nil && !apierrors.IsBadRequest(err):
					wrong = append(wrong, fmt.Sprintf("%s may %s (%s), and: %v", a.name, attack.name, why, err))
				case !permitted && (err == nil || !slices.ContainsFunc(strings.Split(want, or), func(text string) bool { return strings.Contains(err.Error(), text) })):
					wrong = append(wrong, fmt.Sprintf("%s may not %s (%s), and: %v", a.name, attack.name, want, err))
				}
			}
		}
		Expect(wrong).To(BeEmpty(), strings.Join(wrong, "\n"))
	})
})
