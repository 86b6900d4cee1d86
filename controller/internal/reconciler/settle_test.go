package reconciler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Anyone may write such a reference. As a key of the queue, the name would stand in each line of the log.
func TestAnOwnerWhoseNameIsTooLongIsUnknown(t *testing.T) {
	for _, kind := range []string{kinds.StatefulSet, kinds.ReplicaSet, kinds.Deployment} {
		c := newCluster(t)
		known, _, err := kinds.BuiltIn().Find(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.x.kinds, c.x.others = known, make(chan event.TypedGenericEvent[kinds.Ref], 1)
		c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: appsV1, Kind: kind, Name: strings.Repeat("n", huge), UID: "c", Controller: new(true)},
		}}})
		is, err := c.x.settle(t.Context(), kinds.Ref{APIVersion: "v1", Kind: podKind, Namespace: server.Namespace, Name: "a"})
		if is || err != nil || len(c.x.others) > 0 {
			t.Errorf("%s: known %v, %d others, error of %d bytes", kind, is, len(c.x.others), len(errText(err)))
		}
		if len(c.events) != 1 || !strings.HasPrefix(c.events[0], "OwnerUnknown a: ") || len(c.events[0]) > 1<<10 {
			t.Errorf("%s: %d Events: %.200q", kind, len(c.events), c.events)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A ReplicaSet that the cache does not have may say so, too.
func TestAReplicaSetWhoseOwnerHasATooLongNameHasNone(t *testing.T) {
	set := kinds.Ref{APIVersion: appsV1, Kind: kinds.ReplicaSet, Namespace: server.Namespace, Name: "any"}
	above := controlledBy("owner", kinds.Deployment)[0]
	above.Name = strings.Repeat("n", huge)
	if top, known := kinds.BuiltIn().Above(set, &above); known {
		t.Errorf("its owner has a name of %d bytes", len(top.Name))
	}
}
