package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

const sentence = "ValidatingAdmissionPolicy 'newer' with binding 'newer' denied request: pods of before are not to change"

// cluster is a Deployment with its pods on a simulated API server, whose cache shows everything at once.
type cluster struct {
	client.Client

	t   *testing.T
	api *server.Standalone
	clk *testclock.FakeClock
	x   *Reconciler
	ref kinds.Ref

	mu              sync.Mutex
	evicted, events []string
	// refuses names the objects that no write may change. conflicts names pods that change before each write.
	refuses, conflicts map[string]bool
	writes             map[string]int
	// meanwhile is called before each patch of an object.
	meanwhile func(name string)
}

// RoundTrip keeps evictions and Events, and counts writes.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	parts := strings.Split(r.URL.Path, "/")
	name := parts[len(parts)-1]
	switch {
	case name == "eviction":
		c.evicted = append(c.evicted, parts[len(parts)-2])
	case name == "events":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Error(err)
		}
		var e corev1.Event
		if err := json.Unmarshal(body, &e); err != nil {
			c.t.Error(err)
		}
		c.events = append(c.events, e.Reason+" "+e.InvolvedObject.Name+": "+e.Message)
		r.Body = io.NopCloser(bytes.NewReader(body))
	case r.Method == http.MethodPatch:
		if c.meanwhile != nil {
			c.meanwhile(name)
		}
		if c.writes[name]++; c.conflicts[name] {
			c.api.Alone(func(s *server.Server) {
				s.Change(object.Pods, name, server.Writer{}, func(o object.Object) { object.SetText(o, "annotations", "touched", strconv.Itoa(c.writes[name])) })
			})
		}
	}
	c.mu.Unlock()
	if name == "eviction" {
		return server.Answer{Code: http.StatusCreated, Body: []byte(`{"kind":"Eviction","apiVersion":"policy/v1"}`)}.Response(r), nil
	}
	return c.api.RoundTrip(r)
}

// List has no index, so that it lists all pods and all ReplicaSets for each value of it.
func (c *cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	o.FieldSelector, o.Raw = nil, nil
	err := c.Client.List(ctx, list, &o)
	if pods, is := list.(*corev1.PodList); is && err == nil {
		for i := range pods.Items {
			if _, err := trimPod(&pods.Items[i]); err != nil {
				return err
			}
		}
	}
	return err
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, api: server.NewStandalone(), clk: testclock.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		refuses: map[string]bool{}, conflicts: map[string]bool{}, writes: map[string]int{},
	}
	c.api.Alone(func(s *server.Server) {
		s.Refuses = func(v *server.Version) string {
			if c.refuses[v.Name] {
				return sentence
			}
			return ""
		}
	})
	config := &rest.Config{Host: "http://api.invalid", Transport: c, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	s, err := store.New(config, c.clk)
	if err != nil {
		t.Fatal(err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: builtIn()}); err != nil {
		t.Fatal(err)
	}
	c.ref = kinds.Ref{APIVersion: appsV1, Kind: kinds.Deployment, Namespace: server.Namespace, Name: worker}
	c.x = &Reconciler{
		store: s, cache: c, server: c.Client, writer: c.Client, log: logr.Discard(), metrics: NewMetrics(c.clk.Now, nil, nil), told: expiring.NewExpiringWithClock(c.clk),
		slots: make(chan struct{}, 2), slow: make(chan struct{}, 2), memories: map[kinds.Ref]*memory{},
	}
	return c
}

func (c *cluster) create(o client.Object) {
	c.t.Helper()
	o.SetNamespace(server.Namespace)
	if err := c.Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
}

// deployment makes a Deployment whose revision 2 is current. Its rolling update waits for new pods.
func (c *cluster) deployment(count int, slots assignment.Slots) {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": appsV1, "kind": "Deployment",
		"metadata": map[string]any{"name": worker, "annotations": map[string]string{revisionKey: "2", assignment.Key: slots.Encode()}},
		"spec": map[string]any{
			"replicas": count, "selector": map[string]any{"matchLabels": map[string]string{"app": worker}},
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 1, "maxUnavailable": 0}},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.post("deployments", text)
	uid := c.uid("deployments", worker)
	for revision, name := range []string{"old", "new"} {
		set, err := json.Marshal(map[string]any{
			"apiVersion": appsV1, "kind": "ReplicaSet",
			"metadata": map[string]any{
				"name": name, "uid": name, "annotations": map[string]string{revisionKey: strconv.Itoa(revision + 1)},
				"labels":          map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController},
				"ownerReferences": []map[string]any{{"apiVersion": appsV1, "kind": "Deployment", "name": worker, "uid": uid, "controller": true}},
			},
		})
		if err != nil {
			c.t.Fatal(err)
		}
		c.post("replicasets", set)
	}
}

func (c *cluster) post(resource string, body []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://api.invalid/apis/apps/v1/namespaces/"+server.Namespace+"/"+resource, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := c.api.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it is in memory
	if answer.StatusCode != http.StatusCreated {
		c.t.Fatalf("%s: %v", resource, answer)
	}
}

func (c *cluster) uid(resource, name string) (uid string) {
	c.api.Alone(func(s *server.Server) { uid = object.UID(s.Get(resource, name).Object) })
	return uid
}

// gated makes a pod of the current revision that waits behind its gate.
func (c *cluster) gated(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController},
				OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "new")), kinds.ReplicaSet),
			},
			Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: receipt.Gate}}},
		})
	}
}

// reader is a container with the variable that reads the count at the start.
func reader() []corev1.Container {
	field := &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + receipt.StartCountKey + "']"}
	return []corev1.Container{{Env: []corev1.EnvVar{{Name: "IDALLOC_COUNT", ValueFrom: &corev1.EnvVarSource{FieldRef: field}}}}}
}

// runs makes a pod of the old revision that runs under an id, and is available.
func (c *cluster) runs(name string, id, count int) {
	c.t.Helper()
	c.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "old")), kinds.ReplicaSet),
			Labels: map[string]string{
				"app": worker, receipt.AssignLabel: receipt.ByController, receipt.IDLabel: strconv.Itoa(id), receipt.OwnerLabel: assignment.OwnerLabelValue(own),
			},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: reader()},
	})
	uid := c.uid(object.Pods, name)
	r := receipt.Receipt{UID: uid, Owner: own, State: receipt.Locks, Share: receipt.Share{ID: id}, Begun: true, Write: "w" + name}
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, name, server.Writer{}, func(o object.Object) {
			for key, value := range map[string]string{
				receipt.Key: r.Encode(), receipt.IDKey: strconv.Itoa(id), receipt.CountKey: strconv.Itoa(count), receipt.StartCountKey: strconv.Itoa(count),
				receipt.IdentityKey: `{"state":"assigned","id":` + strconv.Itoa(id) + `,"count":` + strconv.Itoa(count) + `,"token":5,"pod":"` + name +
					`","namespace":"` + server.Namespace + `","owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"}}`,
			} {
				object.SetText(o, "annotations", key, value)
			}
		})
	})
	c.ready(name)
}

func (c *cluster) ready(name string) {
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, name, server.Writer{}, func(o object.Object) {
			o["status"] = object.Object{"phase": "Running", "conditions": []any{object.Object{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T11:00:00Z"}}}
		})
	})
}

// on returns an annotation of a pod.
func (c *cluster) on(name, key string) (value string) {
	c.api.Alone(func(s *server.Server) { value = object.Annotation(s.Get(object.Pods, name).Object, key) })
	return value
}

// passes reconciles n times, each at the time that the one before asked for.
func (c *cluster) passes(n int) {
	c.t.Helper()
	for range n {
		result, err := c.x.reconcile(c.t.Context(), c.ref, c.x.memory(c.ref))
		if err != nil {
			c.t.Fatalf("the time to come again is lost with the error: %v", err)
		}
		c.clk.Step(result.RequeueAfter)
	}
}

// A policy that judges updates of pods is newer than one old pod, and the count grew in a rolling update.
func TestAPodThatCannotBeWrittenKeepsNoOtherPodFromAnything(t *testing.T) {
	c := newCluster(t)
	c.deployment(3, assignment.Slots{0: "a", 1: "b"})
	c.runs("a", 0, 2)
	c.runs("b", 1, 2)
	c.gated("d", "e", "f")
	c.refuses["a"] = true
	c.passes(1)
	if got := c.on("b", receipt.CountKey); got != "3" {
		t.Errorf("pod b was told that there are %q ids", got)
	}
	begun := 0
	for _, name := range []string{"d", "e", "f"} {
		if c.on(name, receipt.IDKey) == "2" {
			begun++
			c.ready(name)
		}
	}
	if begun != 1 {
		t.Errorf("%d pods began with the free id", begun)
	}
	if c.passes(1); !slices.Equal(c.evicted, []string{"b"}) {
		t.Errorf("for the waiters these old pods were evicted: %v", c.evicted)
	}
}

// One with the lock of a free slot that cannot be written gives way to one that can be.
func TestASlotGoesToAPodThatCanBeWritten(t *testing.T) {
	for what, refuses := range map[string]func(c *cluster){
		"a policy refuses its receipt": func(c *cluster) { c.refuses["d"] = true },
		"it changes before each write": func(c *cluster) { c.conflicts["d"] = true },
	} {
		c := newCluster(t)
		c.deployment(2, assignment.Slots{0: "a", 1: "d"})
		c.runs("a", 0, 2)
		c.gated("d", "e")
		refuses(c)
		if c.passes(20); c.on("e", receipt.IDKey) != "1" {
			t.Errorf("%s: pod e has id %q", what, c.on("e", receipt.IDKey))
		}
		if len(c.evicted) > 0 {
			t.Errorf("%s: for a pod that takes no slot, these were evicted: %v", what, c.evicted)
		}
		if n, d := c.writes["d"], c.clk.Now().Sub(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)); n > 15+int(d/pace.MaxDelay) {
			t.Errorf("%s: %d writes on it in %s", what, n, d)
		}
		c.refuses, c.conflicts = map[string]bool{}, map[string]bool{}
		c.api.Alone(func(s *server.Server) { s.Remove(s.Get(object.Pods, "a")) })
		if c.passes(5); c.on("d", receipt.IDKey) != "0" {
			t.Errorf("%s: pod d has id %q once it can be written", what, c.on("d", receipt.IDKey))
		}
	}
}

// The policies are of an earlier release, which has no annotation for the count at the start. They refuse it.
func TestPoliciesOfAnEarlierReleaseKeepNoPodFromWhatTheyKnow(t *testing.T) {
	c := newCluster(t)
	c.deployment(3, assignment.Slots{0: "a"})
	c.runs("a", 0, 1)
	c.gated("b")
	c.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c", Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController},
			OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "new")), kinds.ReplicaSet),
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: receipt.Gate}},
			Containers:      reader(),
		},
	})
	older := true
	c.api.Alone(func(s *server.Server) {
		s.Judge = func(w server.Write) string {
			if older && w.Operation == "UPDATE" && object.Annotation(w.Old, receipt.StartCountKey) != object.Annotation(w.Next, receipt.StartCountKey) {
				return sentence
			}
			return ""
		}
	})
	c.passes(10)
	if got := c.on("a", receipt.CountKey); got != "3" {
		t.Errorf("the running pod was told that there are %q ids", got)
	}
	if c.on("b", receipt.IDKey) == "" || c.on("b", receipt.StartCountKey) != "" {
		t.Errorf("a pod that does not read the annotation has id %q", c.on("b", receipt.IDKey))
	}
	if got := c.on("c", receipt.IDKey); got != "" {
		t.Errorf("a pod began with id %s, and its program would read an empty count", got)
	}
	older = false
	c.clk.Step(pace.MaxDelay)
	c.passes(10)
	if c.on("a", receipt.StartCountKey) != "3" || c.on("c", receipt.IDKey) == "" || c.on("c", receipt.StartCountKey) != "3" {
		t.Errorf("with the newer policies a starts with count %q, and c has id %q and count %q",
			c.on("a", receipt.StartCountKey), c.on("c", receipt.IDKey), c.on("c", receipt.StartCountKey))
	}
}

// T3, Begin and new counts need no map.
func TestAMapThatCannotBeWrittenKeepsNoPodFromWhatNeedsNone(t *testing.T) {
	c := newCluster(t)
	c.deployment(3, assignment.Slots{0: "a", 1: "b", 2: "gone"})
	c.runs("a", 0, 2)
	c.gated("b", "d")
	c.refuses[worker] = true
	lock := receipt.Receipt{UID: c.uid(object.Pods, "b"), Owner: own, State: receipt.Locks, Share: receipt.Share{ID: 1}, Write: "w"}
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, "b", server.Writer{}, func(o object.Object) {
			object.SetText(o, "annotations", receipt.Key, lock.Encode())
			object.SetText(o, "labels", receipt.IDLabel, "1")
			object.SetText(o, "labels", receipt.OwnerLabel, assignment.OwnerLabelValue(own))
		})
	})
	for range 3 {
		_, _ = c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref))
	}
	if c.on("a", receipt.CountKey) != "3" || c.on("b", receipt.IDKey) != "1" {
		t.Errorf("pod a was told the count %q, and pod b has id %q", c.on("a", receipt.CountKey), c.on("b", receipt.IDKey))
	}
	if c.on("d", receipt.IDKey) != "" || len(c.evicted) > 0 {
		t.Errorf("without a map pod d has id %q, and these were evicted: %v", c.on("d", receipt.IDKey), c.evicted)
	}
}

// A policy refused a pod, another one took its slot, and the last id is that of an older pod. That one stays for as long as the pod would not begin.
func TestAPodThatWasRefusedComesAgain(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{0: "a", 1: "d"})
	c.runs("a", 0, 2)
	c.gated("d", "e")
	c.refuses["d"] = true
	if c.passes(20); c.on("e", receipt.IDKey) != "1" {
		t.Fatalf("e has id %q", c.on("e", receipt.IDKey))
	}
	c.ready("e")
	if c.passes(60); len(c.evicted) > 0 {
		t.Errorf("for a pod that is refused, these were evicted: %v", c.evicted)
	}
	clear(c.refuses)
	before := c.writes["d"]
	for range 3 {
		if _, err := c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref)); err != nil {
			t.Fatal(err)
		}
		c.clk.Step(10 * time.Second)
	}
	if !slices.Contains(c.evicted, "a") || c.writes["d"] == before || c.on("d", receipt.Key) != "" {
		t.Errorf("once nothing is refused any more: evicted %v, %d writes on d, receipt %q", c.evicted, c.writes["d"]-before, c.on("d", receipt.Key))
	}
	c.api.Alone(func(s *server.Server) { s.Remove(s.Get(object.Pods, "a")) })
	if c.passes(5); c.on("d", receipt.IDKey) != "0" {
		t.Errorf("pod d has id %q", c.on("d", receipt.IDKey))
	}
}

// A policy refused to have an agent told of a slot, which another pod has by now. So the agent is to hear again what it was told before.
func TestAnAgentThatWasRefusedComesAgain(t *testing.T) {
	c := newCluster(t)
	c.deployment(1, assignment.Slots{})
	c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByAgent},
		OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "new")), kinds.ReplicaSet),
	}})
	uid := types.UID(c.uid(object.Pods, "a"))
	told := receipt.Proposal{UID: string(uid), Count: 1, Share: receipt.Nothing(), Why: "no id is free for it yet"}.Encode()
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, "a", server.Writer{}, func(o object.Object) { object.SetText(o, "annotations", receipt.ProposalKey, told) })
	})
	k := c.x.memory(c.ref)
	for _, refused := range []bool{true, false} {
		owner, err := c.x.owner(t.Context(), c.ref, k)
		if err != nil {
			t.Fatal(err)
		}
		p := &pass{Reconciler: c.x, ref: c.ref, owner: owner, memory: k, written: map[string]*podMeta{}, log: logr.Discard()}
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.refuses["a"] = refused
		if refused {
			p.write(t.Context(), c.x.slots, []write{{pod: "a", step: stepPropose, says: "slot 0", do: func(context.Context, *podMeta) (*podMeta, error) {
				return nil, request.ErrRefused
			}}}, nil)
			c.clk.Step(10 * time.Second)
		}
		if err := p.probe(t.Context(), decision.Decision{Probe: []string{"a"}}); err != nil || (k.refuses(uid) != nil) != refused || (p.after == soon) == refused {
			t.Errorf("refused: %v; it counts as refused: %v (%v), and the next pass comes after %s", refused, k.refuses(uid), err, p.after)
		}
		c.clk.Step(10 * time.Second)
	}
	if c.writes["a"] != 2 || c.on("a", receipt.ProposalKey) != told {
		t.Errorf("%d tries, and the agent is told %s", c.writes["a"], c.on("a", receipt.ProposalKey))
	}
}

// A policy refuses writes on as many agents as a pass tells something. They are tried again later, so they have no place in the next pass.
func TestAgentsThatCannotBeWrittenKeepNoOtherFromBeingTold(t *testing.T) {
	c := newCluster(t)
	c.deployment(200, assignment.Slots{})
	p := &pass{Reconciler: c.x, ref: c.ref, memory: c.x.memory(c.ref), written: map[string]*podMeta{}, metas: map[string]*podMeta{}, log: logr.Discard()}
	all := make([]decision.Propose, 0, batch+1)
	for i := range batch + 1 {
		name := fmt.Sprintf("p%03d", i)
		c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByAgent}}})
		c.refuses[name] = i < batch
		pod, err := c.x.store.GetPod(t.Context(), server.Namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		p.metas[name] = pod
		all = append(all, decision.Propose{Pod: name, Next: receipt.Proposal{UID: string(pod.UID), Count: 200, Share: receipt.Nothing(), Why: "x"}})
	}
	last := all[batch].Pod
	for range 5 {
		p.after = 0
		p.propose(t.Context(), all)
	}
	if c.writes[last] == 0 || p.after <= time.Millisecond {
		t.Errorf("in five passes the one pod that may be written had %d writes, and the next pass comes after %s", c.writes[last], p.after)
	}
}

// People hear of it in the API server's own words.
func TestWhoRefusesSaysSo(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{0: "a", 1: "b"})
	c.runs("a", 0, 1)
	c.runs("b", 1, 2)
	c.refuses["a"] = true
	for range 40 {
		_, _ = c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref))
		c.clk.Step(7 * time.Second)
	}
	if len(c.events) != 2 {
		t.Errorf("in less than five minutes there are these Events: %q", c.events)
	}
	for _, name := range []string{"a", worker} {
		said := func(e string) bool {
			return strings.HasPrefix(e, "WriteRefused "+name+": ") && strings.Contains(e, sentence)
		}
		if !slices.ContainsFunc(c.events, said) {
			t.Errorf("%s: Events are %q", name, c.events)
		}
	}
	c.refuses["a"] = false
	c.clk.Step(time.Minute)
	if c.passes(1); c.on("a", receipt.CountKey) != "2" {
		t.Errorf("once it can be written, pod a was told the count %q", c.on("a", receipt.CountKey))
	}
}

// A count that was refused and then went back is nothing that people must hear of.
func TestARefusedCountThatWentBackIsForgotten(t *testing.T) {
	c := newCluster(t)
	scale := func(count int) {
		c.api.Alone(func(s *server.Server) {
			s.Change("deployments", worker, server.Writer{}, func(o object.Object) {
				if err := unstructured.SetNestedField(o, int64(count), "spec", "replicas"); err != nil {
					t.Error(err)
				}
			})
		})
		c.x.memory(c.ref).read = store.Owner{}
	}
	c.deployment(1, assignment.Slots{0: "a"})
	c.runs("a", 0, 1)
	c.passes(3)
	c.refuses["a"] = true
	scale(2)
	if c.passes(3); len(c.events) != 2 {
		t.Fatalf("of the refused count these Events tell: %q", c.events)
	}
	scale(1)
	for range 100 {
		c.passes(1)
		c.clk.Step(7 * time.Second)
	}
	if len(c.events) != 2 {
		t.Errorf("nothing is to be written on the pod, and these Events came: %q", c.events[2:])
	}
}

// The writes on a workload's pods hang, as behind a webhook.
func TestAWorkloadWhoseWritesHangLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, hangs := make(chan struct{}, 4), make(chan struct{})
		c := newCluster(t)
		p := &pass{Reconciler: c.x, ref: c.ref, memory: c.x.memory(c.ref), metas: map[string]*podMeta{}, written: map[string]*podMeta{}, log: logr.Discard()}
		names := []string{"a", "b", "c", "d", "e"}
		all := make([]write, 0, len(names))
		for _, name := range names {
			p.metas[name] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
			all = append(all, write{pod: name, step: stepTake, do: func(context.Context, *podMeta) (*podMeta, error) {
				<-hangs
				return nil, request.ErrGone
			}})
		}
		go p.write(t.Context(), slots, all, nil)
		synctest.Wait()
		if len(slots) != 3 {
			t.Errorf("%d of 4 slots are taken", len(slots))
		}
		close(hangs)
		synctest.Wait()
	})
}

// Another workload's writes hang, and have all slots.
func TestAPassThatTakesTooLongLeavesTheRestToTheNextOne(t *testing.T) {
	p := passOf(t, nil)
	p.metas["a"], p.metrics = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}, NewMetrics(time.Now, nil, nil)
	p.ends = time.Now().Add(-time.Second)
	p.write(t.Context(), make(chan struct{}), []write{{pod: "a", step: stepTake, do: func(context.Context, *podMeta) (*podMeta, error) {
		t.Error("it was sent although there is no slot for it")
		return nil, request.ErrGone
	}}}, nil)
	p.ends = time.Time{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.write(ctx, make(chan struct{}, 1), []write{{pod: "a", step: stepTake, do: func(context.Context, *podMeta) (*podMeta, error) {
		return nil, request.ErrAmbiguous
	}}}, nil)
	if p.memory.refuses("a") != nil || p.memory.backoff("a", stepTake).err != nil {
		t.Error("that the pass ended counts as a failure of the pod")
	}
}

// builtIn maps the kinds that every cluster has.
func builtIn() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"), replicaSets, replicaSets.GroupVersion().WithKind(kinds.Deployment), policyv1.SchemeGroupVersion.WithKind("Eviction"),
	} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	return mapper
}
