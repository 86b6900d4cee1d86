package policy

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

//nolint:gochecknoglobals // constants that Go cannot express
var (
	events    = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	newEvents = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// tells permits to write Events in each way.
func tells() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{events.Resource}, Verbs: []string{"get", "create", patchVerb, updateVerb, "delete"}}
}

// told is an Event as idalloc writes it.
func (s *scene) told(apiVersion, kind, name string, uid types.UID, by ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: object("v1", "Event", "told", nil)}
	for path, value := range map[string]any{
		"involvedObject":     map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": s.ns.Name, "name": name, "uid": string(uid)},
		"type":               "Normal",
		"reason":             "SlotTaken",
		"message":            "id 0 is taken",
		"reportingComponent": "idalloc.dev/allocator",
	} {
		set(value, path)(o)
	}
	o.SetNamespace(s.ns.Name)
	changes(by).all(o)
	return o
}

func (s *scene) aboutPod(pod corev1.Pod, by ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return s.told("v1", "Pod", pod.Name, pod.UID, by...)
}

func (s *scene) aboutDeployment(name string) *unstructured.Unstructured {
	return s.told("apps/v1", "Deployment", name, s.uid)
}

// leaves sends an Event that does not exist.
func leaves(o *unstructured.Unstructured) request {
	return func(ctx context.Context, a actor) error { return a.create(ctx, events, o.DeepCopy().Object) }
}

var _ = Describe("a marked account, on Events,", Ordered, ContinueOnFailure, func() {
	var s *scene
	var marked actor
	var pod corev1.Pod
	BeforeAll(func(ctx SpecContext) {
		s = newScene(ctx)
		Expect(s.ns.Grant(ctx, "unmarked", tells())).To(Succeed())
		s.unmarked = withoutPod(ctx, s.ns.Name, "unmarked")
		pod, marked = s.account(ctx, "tells", mark(), writes(theDeployment), tells())
		Eventually(func() error { return leaves(s.aboutPod(s.another))(ctx, s.unmarked) }).WithContext(ctx).Should(Succeed())
		Eventually(func() error { return leaves(s.aboutPod(s.another))(ctx, marked) }).WithContext(ctx).Should(MatchError(ContainSubstring("idalloc-events")))
	})

	It("may tell of its pod and of its workload, in as many words as idalloc has", func(ctx SpecContext) {
		long := set(strings.Repeat("x", 1024), "message")
		Expect(leaves(s.aboutPod(pod, long))(ctx, marked)).To(Succeed())
		Expect(leaves(s.aboutDeployment(theDeployment))(ctx, marked)).To(Succeed())
	})

	It("may not tell of others", func(ctx SpecContext) {
		const says = "may only write Events about the pod whose token it uses"
		s.refused(ctx, marked, leaves(s.aboutPod(s.another)), says, "not about Pod "+s.another.Name)
		s.refused(ctx, marked, leaves(s.aboutDeployment("other")), says, "not about Deployment other")
		s.refused(ctx, marked, leaves(s.told("v1", "ConfigMap", theDeployment, "1")), says, "not about ConfigMap")
		s.refused(ctx, marked, leaves(s.told("v1", "Pod", s.another.Name, pod.UID, set("other", "involvedObject", "name"))), says)
	})

	It("may not tell much", func(ctx SpecContext) {
		s.refused(ctx, marked, leaves(s.aboutPod(pod, set(strings.Repeat("x", 4<<10), "message"))), "may write at most 4096")
		s.refused(ctx, marked, leaves(s.aboutPod(pod, func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"example.com/large": strings.Repeat("x", 4<<10)})
		})), "may write at most 4096")
	})

	It("may not do so by the newer kind of Event, or with a token that names no pod", func(ctx SpecContext) {
		newer := object("events.k8s.io/v1", "Event", "told", nil)
		newer["regarding"], newer["type"], newer["reason"], newer["action"] = map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": s.ns.Name, "name": s.another.Name}, "Normal", "SlotTaken", "Take"
		newer["reportingController"], newer["reportingInstance"], newer["eventTime"] = "example.com/x", "x", "2026-01-02T03:04:05.000000Z"
		s.refused(ctx, marked, func(ctx context.Context, a actor) error { return a.create(ctx, newEvents, newer) }, "not about Pod "+s.another.Name)
		s.refused(ctx, withoutPod(ctx, s.ns.Name, "tells"), leaves(s.aboutPod(pod)), "names no pod")
	})

	It("may count its own Events on, and not change or delete those of others", func(ctx SpecContext) {
		admin := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(events).Namespace(s.ns.Name)
		stored := func(name string, o *unstructured.Unstructured) {
			o.SetName(name)
			_, err := admin.Create(ctx, o, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		stored("own", s.aboutPod(pod))
		stored("foreign", s.aboutPod(s.another))
		counts := func(name string) request {
			return merges(events, name, `{"count":2}`)
		}
		Expect(counts("own")(ctx, marked)).To(Succeed())
		s.refused(ctx, marked, counts("foreign"), "not about Pod "+s.another.Name)
		s.refused(ctx, marked, removes(events, "own"), "DELETE of an Event")
	})
})
