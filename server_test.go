package idalloc_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// worker0 is the pod of most tests.
const worker0 = "worker-0"

// cluster is an API server with the ReplicaSet "worker" of three replicas and its pod "worker-0". In a real pod there is no cluster to make: the
// zero Options find the API server and the pod's name.
type cluster struct {
	api  *server.Standalone
	http *httptest.Server
	// end ends the watches, and ended is closed then.
	end   context.CancelFunc
	ended <-chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	// refused, if set, is called in place of each patch, which fails then.
	refused func()
	// vanished has each connection break.
	vanished bool
}

// running is what a pod has that runs.
func running() object.Object { return object.Object{"status": object.Object{"phase": "Running"}} }

func newCluster() *cluster {
	c := &cluster{api: server.NewStandalone(), changed: make(chan struct{})}
	c.put(object.ReplicaSets, "worker", object.Object{"spec": replicas("worker", 3)})
	c.put(object.Pods, worker0, running(), controlledBy("ReplicaSet", "worker"))
	ctx, end := context.WithCancel(context.Background())
	c.end, c.ended = end, ctx.Done()
	proxy := &httputil.ReverseProxy{Transport: c.api, Rewrite: func(*httputil.ProxyRequest) {}}
	c.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, proxy) }))
	c.http.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	c.http.Start()
	return c
}

// replicas is the specification of a workload whose pods have the label app.
func replicas(app string, count int64) object.Object {
	return object.Object{"replicas": count, "selector": object.Object{"matchLabels": object.Object{"app": app}}}
}

// controlledBy is a change of an object before it is stored.
func controlledBy(kind, name string) func(meta object.Object) {
	return func(meta object.Object) {
		meta["ownerReferences"] = []any{object.Object{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}}
	}
}

// put stores an object that idalloc wrote just now. Its UID is its name.
func (c *cluster) put(resource, name string, o object.Object, changes ...func(meta object.Object)) {
	k := object.KindOf(resource)
	meta := object.Object{
		"name": name, "namespace": server.Namespace, "uid": name, "labels": object.Object{"app": "worker"},
		"managedFields": []any{object.Object{"manager": assignment.FieldManager, "operation": "Update", "time": time.Now().UTC().Format(time.RFC3339)}},
	}
	for _, change := range changes {
		change(meta)
	}
	o["apiVersion"], o["kind"], o["metadata"] = k.APIVersion, k.Name, meta
	c.do(func(in *server.Server) { in.Put(k, o, server.Writer{Manager: assignment.FieldManager, Restores: true}) })
}

// do uses the server, and says that something has changed.
func (c *cluster) do(f func(*server.Server)) {
	c.api.Alone(f)
	c.tell()
}

func (c *cluster) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// serve answers a request.
func (c *cluster) serve(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
	c.mu.Lock()
	vanished, refused := c.vanished, c.refused
	c.mu.Unlock()
	switch {
	case vanished:
		panic(http.ErrAbortHandler)
	case refused != nil && r.Method == http.MethodPatch:
		refused()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(server.Refuse(http.StatusForbidden, string(metav1.StatusReasonForbidden), "not allowed").Body) // the client may be gone
		return
	}
	proxy.ServeHTTP(w, r)
	if r.Method != http.MethodGet {
		c.tell()
	}
}

// options are those of the pod worker-0.
func (c *cluster) options() idalloc.Options {
	return idalloc.Options{PodName: worker0, PodNamespace: server.Namespace, Config: &rest.Config{Host: c.http.URL}, Log: discard}
}

func (c *cluster) close() {
	c.end()
	c.http.CloseClientConnections()
	c.http.Close()
}

// scale sets the number of replicas.
func (c *cluster) scale(count int64) {
	c.do(func(in *server.Server) {
		in.Change(object.ReplicaSets, "worker", server.Writer{Manager: "kubectl"}, func(o object.Object) { o["spec"] = replicas("worker", count) })
	})
}

// slots is what the workload's map says.
func (c *cluster) slots() (text string) {
	c.api.Alone(func(in *server.Server) {
		text = object.Annotation(in.Get(object.ReplicaSets, "worker").Object, assignment.Key)
	})
	return text
}

// receiptText is what stands on a pod.
func (c *cluster) receiptText(pod string) (text string) {
	c.api.Alone(func(in *server.Server) { text = object.Annotation(in.Get(object.Pods, pod).Object, receipt.Key) })
	return text
}

// receiptOf is what a pod says. One that says nothing, or that cannot be read, locks nothing.
func (c *cluster) receiptOf(pod string) receipt.Receipt {
	r, _ := receipt.Parse(c.receiptText(pod)) // the zero one says nothing
	return r
}

// refuse has each patch fail from now on, after a call of f.
func (c *cluster) refuse(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = f
}

// unlocked returns a channel that is closed when the receipt of the pod locks no slot.
func (c *cluster) unlocked(pod string) <-chan struct{} {
	unlocked := make(chan struct{})
	go func() {
		for {
			c.mu.Lock()
			changed := c.changed
			c.mu.Unlock()
			if c.receiptOf(pod).State != receipt.Locks {
				close(unlocked)
				return
			}
			select {
			case <-changed:
			case <-c.ended:
				return
			}
		}
	}()
	return unlocked
}

// roll makes the Deployment "site" of one replica, in the middle of an update. The process of the new revision's pod "site-new" has just died
// while it held the slot. The old revision's pod "site-old" has given the slot up before, and waits.
func (c *cluster) roll() {
	const owner = "Deployment/site"
	label := func(meta object.Object) { meta["labels"] = object.Object{"app": "site"} }
	c.put(object.Deployments, "site", object.Object{
		"spec": replicas("site", 1), "status": object.Object{"replicas": int64(2), "updatedReplicas": int64(1)},
	}, annotated(assignment.State{Slots: assignment.Slots{0: "site-new"}}.Encode()))
	for name, r := range map[string]receipt.Receipt{
		"site-new": {State: receipt.Locks, Share: receipt.Share{ID: 0}},
		"site-old": {State: receipt.GaveUp, Rank: 1},
	} {
		r.UID, r.Owner, r.Write = name, owner, "1"
		c.put(object.ReplicaSets, name, object.Object{"spec": replicas("site", 1)}, controlledBy("Deployment", "site"))
		locked := func(meta object.Object) {
			if r.State == receipt.Locks {
				meta["labels"] = object.Object{"app": "site", receipt.IDLabel: "0", receipt.OwnerLabel: assignment.OwnerLabelValue(owner)}
			}
		}
		c.put(object.Pods, name, running(),
			label, locked, controlledBy("ReplicaSet", name), annotated(map[string]string{receipt.Key: r.Encode()}))
	}
}

// annotated is a change of an object before it is stored.
func annotated(with map[string]string) func(meta object.Object) {
	return func(meta object.Object) {
		all := object.Object{}
		for key, text := range with {
			all[key] = text
		}
		meta["annotations"] = all
	}
}

// replace puts another pod of the same name into the place of worker-0.
func (c *cluster) replace() {
	c.do(func(in *server.Server) { in.Remove(in.Get(object.Pods, worker0)) })
	c.put(object.Pods, worker0, running(), controlledBy("ReplicaSet", "worker"),
		func(meta object.Object) { meta["uid"] = "another" })
}

// vanish has each connection break from now on, or no more.
func (c *cluster) vanish(vanished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vanished = vanished; vanished {
		c.http.CloseClientConnections()
	}
}
