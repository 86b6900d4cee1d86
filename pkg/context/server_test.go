package context_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

const (
	podsPath     = "/api/v1/namespaces/shop/pods"
	workerPath   = "/apis/apps/v1/namespaces/shop/statefulsets/worker"
	partialKind  = "PartialObjectMetadata"
	partialGroup = "meta.k8s.io/v1"
	apiVersion   = "apiVersion"
	metadata     = "metadata"
	appsV1       = "apps/v1"
)

// cluster is an API server with the StatefulSet "worker" of three replicas and its pod "worker-0". It only knows the requests that the examples
// need. In a real pod there is no cluster to make: the zero Options find the API server and the pod's name.
type cluster struct {
	server *httptest.Server

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by path
	version int
	changed chan struct{} // closed and replaced at every change
	// refused, if set, is called in place of each patch, which fails then.
	refused func()
	// vanished has each connection break.
	vanished bool
	// closed is closed with the cluster.
	closed chan struct{}
}

func newCluster() *cluster {
	c := &cluster{objects: map[string]*unstructured.Unstructured{}, changed: make(chan struct{}), closed: make(chan struct{})}
	c.set(workerPath, &unstructured.Unstructured{Object: map[string]any{
		apiVersion: appsV1, "kind": "StatefulSet",
		metadata: map[string]any{"name": "worker", "namespace": "shop", "uid": "c0ffee"},
		"spec":   map[string]any{"replicas": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "worker"}}},
	}})
	c.set(podsPath+"/worker-0", &unstructured.Unstructured{Object: map[string]any{
		apiVersion: "v1", "kind": "Pod",
		metadata: map[string]any{
			"name": "worker-0", "namespace": "shop", "uid": "3f1c09be", "labels": map[string]any{"app": "worker"},
			"ownerReferences": []any{map[string]any{apiVersion: appsV1, "kind": "StatefulSet", "name": "worker", "uid": "c0ffee", "controller": true}},
		},
		"status": map[string]any{"phase": "Running"},
	}})
	c.server = httptest.NewServer(c)
	return c
}

// options are those of the pod worker-0.
func (c *cluster) options() idcontext.Options {
	return idcontext.Options{PodName: "worker-0", PodNamespace: "shop", Config: &rest.Config{Host: c.server.URL}, Log: discard}
}

func (c *cluster) close() { close(c.closed); c.server.CloseClientConnections(); c.server.Close() }

// scale sets the number of replicas.
func (c *cluster) scale(replicas int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	worker := c.objects[workerPath].DeepCopy()
	worker.Object["spec"].(map[string]any)["replicas"] = replicas //nolint:errcheck,forcetypeassert // newCluster made it
	c.set(workerPath, worker)
}

// annotation returns what the object says under the key now.
func (c *cluster) annotation(path, key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[path].GetAnnotations()[key]
}

// refuse has each patch fail from now on, after a call of f.
func (c *cluster) refuse(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = f
}

// unlocked returns a channel that is closed when the receipt of worker-0 locks no slot.
func (c *cluster) unlocked() <-chan struct{} { return c.unlockedBy("worker-0") }

// unlockedBy is unlocked for any pod.
func (c *cluster) unlockedBy(pod string) <-chan struct{} {
	unlocked := make(chan struct{})
	go func() {
		for {
			c.mu.Lock()
			text, changed := c.objects[podsPath+"/"+pod].GetAnnotations()[assignment.ReceiptKey], c.changed
			c.mu.Unlock()
			if r, err := assignment.ParseReceipt(text, time.Now()); err != nil || !r.Locks() {
				close(unlocked)
				return
			}
			select {
			case <-changed:
			case <-c.closed:
				return
			}
		}
	}()
	return unlocked
}

// roll makes the Deployment "site" of one replica, in the middle of an update. The process of the new revision's pod "site-new" has just died
// while it held the slot. The old revision's pod "site-old" has given the slot up before, and waits.
func (c *cluster) roll() {
	const apps = "/apis/" + appsV1 + "/namespaces/shop/"
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UnixMilli()
	add := func(path string, o map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: o}
		c.set(path, u)
		return u
	}
	labels := map[string]any{"app": "site"}
	by := func(kind, name string) []any {
		return []any{map[string]any{apiVersion: appsV1, "kind": kind, "name": name, "uid": name, "controller": true}}
	}
	site := add(apps+"deployments/site", map[string]any{
		apiVersion: appsV1, "kind": "Deployment",
		metadata: map[string]any{"name": "site", "namespace": "shop", "uid": "site"},
		"spec":   map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": labels}},
		"status": map[string]any{"replicas": int64(2), "updatedReplicas": int64(1)},
	})
	state := assignment.State{Epoch: now, Slots: assignment.Slots{0: "site-new"}, UIDs: assignment.Slots{0: "site-new"}}
	site.SetAnnotations(state.Encode(assignment.DefaultKey, "site"))
	manage(site, assignment.FieldManager)
	for name, receipt := range map[string]assignment.Receipt{
		"site-new": {UID: "site-new", Owner: "Deployment/site", ID: 0, Epoch: now},
		"site-old": {UID: "site-old", Owner: "Deployment/site", GaveUp: true},
	} {
		add(apps+"replicasets/"+name, map[string]any{
			apiVersion: appsV1, "kind": "ReplicaSet",
			metadata: map[string]any{"name": name, "namespace": "shop", "uid": name, "ownerReferences": by("Deployment", "site")},
		})
		add(podsPath+"/"+name, map[string]any{
			apiVersion: "v1", "kind": "Pod",
			metadata: map[string]any{
				"name": name, "namespace": "shop", "uid": name, "labels": labels, "ownerReferences": by("ReplicaSet", name),
				"annotations": map[string]any{assignment.ReceiptKey: receipt.Encode()},
			},
			"status": map[string]any{"phase": "Running"},
		})
	}
}

// replace puts another pod of the same name into the place of worker-0.
func (c *cluster) replace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	other := c.objects[podsPath+"/worker-0"].DeepCopy()
	other.SetUID("90d2a7c4")
	other.SetAnnotations(nil)
	other.SetLabels(map[string]string{"app": "worker"})
	c.set(podsPath+"/worker-0", other)
}

// vanish has each connection break from now on, or no more.
func (c *cluster) vanish(vanished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished = vanished
	if vanished {
		c.server.CloseClientConnections()
	}
}

// assign writes the workload's state as idalloc does.
func (c *cluster) assign(s assignment.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	worker := c.objects[workerPath].DeepCopy()
	worker.SetAnnotations(s.Encode(assignment.DefaultKey, string(worker.GetUID())))
	manage(worker, assignment.FieldManager)
	c.set(workerPath, worker)
}

// set stores an object under a new version. The caller must hold the lock.
func (c *cluster) set(path string, o *unstructured.Unstructured) {
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	o.SetGeneration(int64(c.version))
	c.objects[path] = o
	close(c.changed)
	c.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	vanished := c.vanished
	c.mu.Unlock()
	if vanished {
		panic(http.ErrAbortHandler)
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPatch:
		c.patch(w, r)
	case r.Method == http.MethodGet && query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.Method == http.MethodGet && query.Get("watch") != "":
		c.watch(w, r)
	case r.Method == http.MethodGet:
		c.get(w, r)
	default:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
}

func (c *cluster) get(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.objects[r.URL.Path]; ok {
		answer(w, shown(o, r))
		return
	}
	list := map[string]any{apiVersion: partialGroup, "kind": partialKind + "List", metadata: map[string]any{"resourceVersion": strconv.Itoa(c.version)}}
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		list[apiVersion], list["kind"] = appsV1, "List"
	}
	items := []any{}
	for _, o := range c.selected(r, 0) {
		items = append(items, shown(o, r))
	}
	list["items"] = items
	answer(w, list)
}

// selected returns the objects of a list or watch request that are newer than a version, oldest first.
func (c *cluster) selected(r *http.Request, newer int) []*unstructured.Unstructured {
	byLabel, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	name, named := fields.ParseSelectorOrDie(r.URL.Query().Get("fieldSelector")).RequiresExactMatch("metadata.name")
	var found []*unstructured.Unstructured
	for path, o := range c.objects {
		if strings.HasPrefix(path, r.URL.Path+"/") && versionOf(o) > newer && byLabel.Matches(labels.Set(o.GetLabels())) && (!named || o.GetName() == name) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return versionOf(a) - versionOf(b) })
	return found
}

func (c *cluster) watch(w http.ResponseWriter, r *http.Request) {
	since := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &since)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		c.mu.Lock()
		changed := c.changed
		for _, o := range c.selected(r, since) {
			since = versionOf(o)
			write(w, map[string]any{"type": "MODIFIED", "object": shown(o, r)})
		}
		c.mu.Unlock()
		w.(http.Flusher).Flush() //nolint:errcheck,forcetypeassert // that of a server is one
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// patch applies a JSON Patch, and notes who wrote the annotations.
func (c *cluster) patch(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused != nil {
		c.refused()
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	}
	after, err := patched(c.objects[r.URL.Path], r.Body)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	manage(after, r.URL.Query().Get("fieldManager"))
	c.set(r.URL.Path, after)
	answer(w, shown(after, r))
}

// manage notes that a field manager wrote all annotations of an object.
func manage(o *unstructured.Unstructured, manager string) {
	owned := make([]string, 0, len(o.GetAnnotations()))
	for key := range o.GetAnnotations() {
		owned = append(owned, fmt.Sprintf(`"f:%s":{}`, key))
	}
	fieldsV1 := metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{` + strings.Join(owned, ",") + `}}}`)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: fieldsV1,
	}})
}

func patched(o *unstructured.Unstructured, body io.Reader) (*unstructured.Unstructured, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	before, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if text, err = patch.Apply(before); err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	err = after.UnmarshalJSON(text)
	return after, err
}

// shown returns an object in the form that the client asks for.
func shown(o *unstructured.Unstructured, r *http.Request) any {
	if !strings.Contains(r.Header.Get("Accept"), "as="+partialKind) {
		return o.Object
	}
	return map[string]any{apiVersion: partialGroup, "kind": partialKind, metadata: o.Object[metadata]}
}

func versionOf(o *unstructured.Unstructured) (version int) {
	_, _ = fmt.Sscan(o.GetResourceVersion(), &version)
	return version
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	write(w, body)
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	write(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: code})
}

// write ends an answer. An error means that the example has ended.
func write(w io.Writer, body any) {
	if text, err := json.Marshal(body); err == nil {
		_, _ = w.Write(text)
	}
}
