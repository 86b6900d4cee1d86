package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// row is a line of the table.
type row struct {
	id, pod, state, says, note string
	fine                       bool // the pod holds the slot and says so
	// leftover: the entry is at or above the count and its pod is gone. It goes with the next write, which may be much later.
	leftover bool
}

// frame is one moment of the workload.
type frame struct {
	rows []row
	// holders maps pods to ids, where the pod and the Deployment agree.
	holders map[string]int
	pods    map[string]*corev1.Pod // all that exist
}

// settled says that n pods hold 0 to n-1 and there is nothing else but leftovers.
func (f frame) settled(n int) bool {
	rows := 0
	for _, r := range f.rows {
		if !r.leftover {
			rows++
		}
	}
	return len(f.holders) == n && rows == n && len(f.pods) == n
}

// observer knows the slots as "idalloc get" shows them, and what each pod says of itself.
type observer struct {
	store      *store.Store
	ref        store.Ref
	ns         *suite.Namespace
	http       *http.Client
	before     map[string]int     // id by pod at the start of the phase
	seen       map[types.UID]bool // every pod there ever was
	writes     atomic.Int64       // of idalloc to the Deployment
	assignment atomic.Value       // the annotation, a string
}

// observe begins to follow the Deployment, until the control plane ends.
func observe(ctx context.Context, env *suite.Suite, ns *suite.Namespace) (o *observer, err error) {
	o = &observer{ns: ns, http: &http.Client{Timeout: time.Second}, seen: map[types.UID]bool{}}
	if o.store, err = store.New(env.ControlPlane.Config(), clock.RealClock{}); err != nil {
		return nil, err
	}
	if o.ref, err = store.ParseRef("deployment/"+workload, ns.Name); err != nil {
		return nil, err
	}
	deployments, err := env.Client.AppsV1().Deployments(ns.Name).Watch(context.WithoutCancel(ctx), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	go o.count(deployments.ResultChan())
	return o, nil
}

// count counts how often what idalloc writes on the Deployment changes.
func (o *observer) count(events <-chan watch.Event) {
	last := ""
	for event := range events {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		o.assignment.Store(deployment.Annotations[assignment.Key])
		written := make([]string, 0, len(assignment.Keys()))
		for _, key := range assignment.Keys() {
			written = append(written, deployment.Annotations[key])
		}
		now := strings.Join(written, "\n")
		if now != last && strings.TrimSpace(now) != "" {
			last = now
			o.writes.Add(1)
		}
	}
}

// look returns what is there now.
func (o *observer) look(ctx context.Context) (frame, error) {
	view, err := inspect.Read(ctx, o.store, o.ref)
	if err != nil && !apierrors.IsNotFound(err) {
		return frame{}, err
	}
	list, err := o.ns.Pods(ctx, workload)
	if err != nil {
		return frame{}, err
	}
	f := frame{holders: map[string]int{}, pods: map[string]*corev1.Pod{}}
	for i := range list {
		f.pods[list[i].Name], o.seen[list[i].UID] = &list[i], true
	}
	for _, slot := range view.Slots {
		r := o.row(ctx, view.Count, slot, f.pods[slot.Pod])
		if r.fine {
			f.holders[r.pod] = slot.ID
		}
		f.rows = append(f.rows, r)
	}
	for _, name := range view.Waiting {
		f.rows = append(f.rows, row{id: "-", pod: name, state: "waiting", says: "no id yet", note: o.note(name, identity.None)})
	}
	return f, nil
}

func (o *observer) row(ctx context.Context, count int, slot inspect.Slot, pod *corev1.Pod) row {
	r := row{id: strconv.Itoa(slot.ID), pod: cmp.Or(slot.Pod, "-"), state: string(slot.State), says: "-"}
	var says identity.Identity
	if pod != nil {
		says = o.ask(ctx, pod.Status.PodIP)
		r.says, r.note = cmp.Or(string(says.State), "-"), o.note(pod.Name, slot.ID)
	}
	if says.Assigned() {
		r.says = fmt.Sprintf("I am %d of %d", says.ID, says.Count)
	}
	switch {
	case slot.State == inspect.Free:
	case pod == nil:
		r.state, r.leftover = gone, slot.ID >= count
	case pod.DeletionTimestamp != nil || slot.Terminating:
		r.state, r.note = "terminating", ""
	case says.State == identity.StateDraining:
		r.state = "draining"
	case slot.ID >= count:
		r.state = "must move"
	case slot.State == inspect.Proposed, slot.State == inspect.Held && (!says.Assigned() || says.ID != slot.ID):
		r.state = "starting"
	case slot.State == inspect.Held: // else it has not heard of the new count yet, or has not passed its readiness probe
		r.fine = says.Count == count && suite.Ready(pod)
	}
	return r
}

// ask asks a pod who it is, over the HTTP of its watcher. The answer is empty if the watcher does not run yet, or not any more.
func (o *observer) ask(ctx context.Context, ip string) (id identity.Identity) {
	url := "http://" + net.JoinHostPort(ip, strconv.Itoa(httpPort)) + "/v1/identity"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil || ip == "" {
		return id
	}
	resp, err := o.http.Do(req)
	if err != nil {
		return id
	}
	defer func() { _ = resp.Body.Close() }()
	_ = json.NewDecoder(resp.Body).Decode(&id) // an answer that is no identity leaves id empty
	return id
}

// note says what changed for a pod since the phase began.
func (o *observer) note(pod string, id int) string {
	was, known := o.before[pod]
	switch {
	case len(o.before) == 0 || known && was == id:
		return ""
	case !known:
		return "new"
	case id == identity.None:
		return fmt.Sprintf("had %d", was)
	default:
		return fmt.Sprintf("moved from %d", was)
	}
}
