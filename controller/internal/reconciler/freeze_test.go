package reconciler

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// An older ReplicaSet of the same Deployment has no replicas, and an evicted pod that nothing removes.
func TestADeadPodOfAnotherReplicaSetFreezesNothing(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{})
	c.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "dead", Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController}, OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "old")), kinds.ReplicaSet)},
	})
	for _, set := range []string{"old", "new"} {
		c.api.Alone(func(s *server.Server) {
			s.Change("replicasets", set, server.Writer{}, func(o object.Object) {
				delete(object.At(o, object.Metadata), "ownerReferences")
				n := int64(0)
				if set == "new" {
					n = 2
				}
				o["spec"] = object.Object{"replicas": n, "selector": object.Object{"matchLabels": object.Object{"app": worker}}}
			})
		})
	}
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, "dead", server.Writer{}, func(o object.Object) { o["status"] = object.Object{"phase": "Failed"} })
	})
	c.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController}, OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "new")), kinds.ReplicaSet)},
		Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: receipt.Gate}}},
	})
	c.x.cache = byIndex{c}
	c.ref = kinds.Ref{APIVersion: appsV1, Kind: kinds.ReplicaSet, Namespace: server.Namespace, Name: "new"}
	for range 20 {
		if _, err := c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref)); err != nil {
			t.Fatal(err)
		}
		c.clk.Step(10 * time.Second)
	}
	if c.on("p", receipt.IDKey) == "" {
		t.Errorf("pod p waits for ever: %v %q", c.events, c.on("p", receipt.Key))
	}
}

// A Deployment was deleted without its ReplicaSets in a migration: the processes of the older revision lock for themselves, so its label is another one. A new pod
// would begin under an id of theirs.
func TestAReplicaSetOfAMigrationFreezesTheOther(t *testing.T) {
	c := newCluster(t)
	c.deployment(1, assignment.Slots{})
	for set, by := range map[string]string{"old": receipt.ByAgent, "new": receipt.ByController} {
		c.api.Alone(func(s *server.Server) {
			s.Change("replicasets", set, server.Writer{}, func(o object.Object) {
				delete(object.At(o, object.Metadata), "ownerReferences")
				object.SetText(o, "labels", receipt.AssignLabel, by)
				o["spec"] = object.Object{"replicas": int64(1), "selector": object.Object{"matchLabels": object.Object{"app": worker}}}
			})
		})
	}
	c.gated("p")
	c.x.cache = byIndex{c}
	c.ref = kinds.Ref{APIVersion: appsV1, Kind: kinds.ReplicaSet, Namespace: server.Namespace, Name: "new"}
	if c.passes(5); c.on("p", receipt.Key) != "" {
		t.Errorf("pod p locks %s while pods of another ReplicaSet of the Deployment run", c.on("p", receipt.Key))
	}
}

// byIndex is a cache that knows its index.
type byIndex struct{ *cluster }

func (b byIndex) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := b.cluster.List(ctx, list, options...); err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	if pods, is := list.(*corev1.PodList); is && o.FieldSelector != nil {
		value, _ := o.FieldSelector.RequiresExactMatch(index)
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !slices.Contains(indexed(&p), value) })
	}
	return nil
}
