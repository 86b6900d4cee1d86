package idalloc_test

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/apifake"
)

const (
	// worker0 is the pod of most tests.
	worker0 = "worker-0"
	// set is the kind of its workload.
	set = "ReplicaSet"
)

// cluster is an API server with the ReplicaSet "worker" of three replicas and its pod "worker-0". In a real pod there is no cluster to make: the
// zero Options find the API server and the pod's name.
type cluster struct {
	api *apifake.Server
	// end ends what waits for a change, and ended says so.
	end context.CancelFunc
	ctx context.Context //nolint:containedctx // of the cluster's life
}

func newCluster() *cluster {
	c := &cluster{api: apifake.Start()}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.api.Put(workload(set, apifake.Worker, 3))
	c.api.Put(apifake.PodOf(worker0, apifake.Worker))
	return c
}

// workload is one whose pods have its name as their label app. Its UID is its name.
func workload(kind, name string, count int64) *unstructured.Unstructured {
	o := apifake.Owner(count)
	o.SetKind(kind)
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.Object["spec"] = map[string]any{"replicas": count, "selector": map[string]any{"matchLabels": map[string]any{"app": name}}}
	return o
}

// options are those of the pod worker-0.
func (c *cluster) options() idalloc.Options {
	return idalloc.Options{PodName: worker0, PodNamespace: apifake.Namespace, Config: c.api.Config(), Log: discard}
}

func (c *cluster) close() {
	c.end()
	c.api.Close()
}

// scale sets the number of replicas.
func (c *cluster) scale(count int64) {
	c.api.Change(set, apifake.Worker, func(o *unstructured.Unstructured) {
		o.Object["spec"] = workload(set, apifake.Worker, count).Object["spec"]
	})
}

// slots is what the workload's map says.
func (c *cluster) slots() string {
	return c.api.Get(set, apifake.Worker).GetAnnotations()[assignment.Key]
}

// receiptText is what stands on a pod.
func (c *cluster) receiptText(pod string) string {
	return c.api.Get(apifake.Pods, pod).GetAnnotations()[receipt.Key]
}

// receiptOf is what a pod says. One that says nothing, or that cannot be read, locks nothing.
func (c *cluster) receiptOf(pod string) receipt.Receipt {
	r, _ := receipt.Parse(c.receiptText(pod)) // the zero one says nothing
	return r
}

// refuse has each patch fail from now on, after a call of f.
func (c *cluster) refuse(f func()) {
	c.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		f()
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "not allowed")
		return true
	})
}

// unlocked returns a channel that is closed when the receipt of the pod locks no slot.
func (c *cluster) unlocked(pod string) <-chan struct{} {
	unlocked := make(chan struct{})
	go func() {
		if c.api.Await(c.ctx, func() bool { return c.receiptOf(pod).State != receipt.Locks }) {
			close(unlocked)
		}
	}()
	return unlocked
}

// roll makes the Deployment "site" of one replica, in the middle of an update. The process of the new revision's pod "site-new" has just died
// while it held the slot. The old revision's pod "site-old" has given the slot up before, and waits.
func (c *cluster) roll() {
	const owner = "Deployment/site"
	site := workload(apifake.Deployment, "site", 1)
	site.Object["status"] = map[string]any{"replicas": int64(2), "updatedReplicas": int64(1)}
	site.SetAnnotations(assignment.State{Slots: assignment.Slots{0: "site-new"}}.Encode())
	c.api.Put(site)
	for name, r := range map[string]receipt.Receipt{
		"site-new": {State: receipt.Locks, Share: receipt.Share{ID: 0}},
		"site-old": {State: receipt.GaveUp, Rank: 1},
	} {
		replicas := workload(set, name, 1)
		replicas.SetOwnerReferences(apifake.ControlledBy(apifake.Deployment, "site", "site"))
		c.api.Put(replicas)
		pod := apifake.PodOf(name, name)
		r.UID, r.Owner, r.Write = string(pod.GetUID()), owner, "1"
		pod.SetAnnotations(map[string]string{receipt.Key: r.Encode()})
		pod.SetLabels(map[string]string{"app": "site"})
		if r.State == receipt.Locks {
			pod.SetLabels(map[string]string{"app": "site", receipt.IDLabel: "0", receipt.OwnerLabel: assignment.OwnerLabelValue(owner)})
		}
		pod.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: assignment.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.Now())}})
		c.api.Put(pod)
	}
}

// replace puts another pod of the same name into the place of worker-0.
func (c *cluster) replace() {
	pod := apifake.PodOf(worker0, apifake.Worker)
	pod.SetUID("another")
	c.api.Put(pod)
}
