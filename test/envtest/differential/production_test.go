package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/pkg/watch"
)

// class is an error as idalloc tells errors apart.
func class(err error) string {
	var forbidden *request.ForbiddenError
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		return "no error"
	case errors.As(err, &forbidden):
		return "forbidden: " + forbidden.Verb + " " + forbidden.Resource
	case errors.Is(err, request.ErrNotKept):
		return "not kept"
	case errors.Is(err, request.ErrConflict):
		return "conflict"
	case errors.Is(err, request.ErrAmbiguous):
		return "ambiguous"
	case errors.Is(err, request.ErrGone):
		return "gone"
	case errors.Is(err, request.ErrNoAnswer):
		return "no answer"
	case errors.As(err, &answer):
		return string(answer.Status().Reason)
	}
	return err.Error()
}

// owned notes what idalloc makes of an owner, and remembers it.
func (s *side) owned(key string, o store.Owner, err error) {
	if err != nil {
		s.notef("store: %s", class(err))
		return
	}
	s.owners[key] = append(s.owners[key], o)
	s.notef("store: count %d, selector %q, rollout %+v, annotations %v (nil: %t), %d problems, terminating %t",
		o.Count, o.Selector, o.Rollout, texts(toObject(o.Annotations)), o.Annotations == nil, len(o.Record.Problems), o.Terminating)
}

func toObject(m map[string]string) object {
	out := object{}
	for key, value := range m {
		out[key] = value
	}
	return out
}

// last returns what was remembered last but back; ok is false if there is nothing.
func last[T any](all []T, back int) (v T, ok bool) {
	if len(all) == 0 {
		return v, false
	}
	return all[max(0, len(all)-1-back)], true
}

// propose draws a compare-and-swap of idalloc on an owner that was read a while ago.
func (g *generator) propose() step {
	resource, name, back := g.resource(), g.owner(), g.back()
	g.values++
	state := assignment.State{Slots: assignment.Slots{}}
	for id := range g.r.IntN(4) {
		state.Slots[id] = fmt.Sprintf("p-%d-%d", id, g.values)
	}
	if g.chance(0.3) {
		state.Handover = assignment.Slots{0: "asker"}
	}
	if g.chance(0.2) {
		state.Row = &assignment.Row{Count: 4, Strategy: "sticky", Owners: placement.Owners{0: placement.Between(0, 3)}}
	}
	if g.chance(0.03) {
		for id := range 9000 {
			state.Slots[id] = fmt.Sprintf("a-pod-with-a-long-name-%d", id)
		}
	}
	readFirst := g.chance(0.7)
	return stepf(func(ctx context.Context, s *side) error {
		key := resource + "/" + name
		if readFirst {
			o, err := s.store.GetOwner(ctx, s.ref(resource, name))
			s.owned(key, o, err)
		}
		from, ok := last(s.owners[key], back)
		if !ok {
			return nil
		}
		o, err := s.store.Propose(ctx, from, state)
		s.owned(key, o, err)
		return nil
	}, "propose %d slots (handover %t, partitions %t) to %s/%s as it was %d looks ago, read before: %t",
		len(state.Slots), state.Handover != nil, state.Row != nil, resource, name, back, readFirst)
}

// lock draws a receipt.
func (g *generator) lock() receipt.Receipt {
	g.values++
	r := receipt.Receipt{UID: "u", Owner: "Deployment/a", Share: receipt.Nothing(), Write: fmt.Sprintf("w%d", g.values)}
	r.State = pick(g, receipt.Waits, receipt.GaveUp, receipt.Locks, receipt.Locks, receipt.Locks)
	if r.State == receipt.Locks {
		r.Share, r.HandsOver = receipt.Share{ID: g.r.IntN(3)}, true
	}
	return r
}

// receipt draws a compare-and-swap of a pod's receipt.
func (g *generator) receipt() step {
	name, back, next := g.pod(), g.back(), g.lock()
	readFirst, wroteIt, central := g.chance(0.7), g.chance(0.7), g.chance(0.3)
	return stepf(func(ctx context.Context, s *side) error {
		if readFirst {
			pod, err := s.store.GetPod(ctx, s.namespace, name)
			s.podRead(name, pod, err)
		}
		pod, ok := last(s.pods[name], back)
		if !ok {
			return nil
		}
		wrote := ""
		if wroteIt {
			wrote = pod.Annotations[receipt.Key]
		}
		swap := func() (*metav1.PartialObjectMetadata, error) { return s.store.SwapLock(ctx, pod, wrote, next) }
		if central {
			swap = func() (*metav1.PartialObjectMetadata, error) { return s.store.Take(ctx, pod, next) }
		}
		written, err := swap()
		s.podRead(name, written, err)
		return nil
	}, "receipt of %s (%s) as it was %d looks ago, read before: %t, by the controller: %t, by the same process: %t", name, next.Encode(), back, readFirst, central, wroteIt)
}

// lease draws a compare-and-swap of a slot's Lease.
func (g *generator) lease() step {
	id, back, next := g.r.IntN(2), g.back(), g.lock()
	readFirst := g.chance(0.7)
	return stepf(func(ctx context.Context, s *side) error {
		ref := s.ref(deployments, "a")
		if readFirst {
			l, err := s.store.GetLease(ctx, ref, id)
			s.leaseRead(id, l, err)
		}
		l, ok := last(s.leases[id], back)
		if !ok {
			return nil
		}
		l = slotlease.Lease{ID: id, Version: l.Version, Lasts: 20 * time.Second}
		if next.State == receipt.Locks {
			next.Share.ID = id
			l.Holder, l.Pod, l.Receipt, l.Renewed = next.UID, "p", next, s.clock.Now()
		}
		l, err := s.store.PutLease(ctx, ref, l)
		s.leaseRead(id, l, err)
		return nil
	}, "Lease of slot %d (%s) as it was %d looks ago, read before: %t", id, next.Encode(), back, readFirst)
}

func (s *side) leaseRead(id int, l slotlease.Lease, err error) {
	if err == nil {
		s.leases[id] = append(s.leases[id], l)
	}
	s.notef("store: %s, holder %q, locks %+v, exists %t", class(err), l.Holder, l.Receipt, l.Version != "")
}

func (s *side) podRead(name string, pod *metav1.PartialObjectMetadata, err error) {
	if err == nil {
		s.pods[name] = append(s.pods[name], pod)
	}
	s.notef("store: %s", class(err))
}

// production draws one of idalloc's other requests.
func (g *generator) production() step {
	resource, name, pod, id := g.resource(), g.owner(), g.pod(), g.r.IntN(4)-1
	options := metav1.ListOptions{LabelSelector: pick(g, "app=worker", assignment.HoldersSelector("Deployment/a"), ""), FieldSelector: pick(g, store.LivePods, "")}
	requests := map[string]func(ctx context.Context, s *side) error{
		"Get": func(ctx context.Context, s *side) error {
			o, err := s.store.GetOwner(ctx, s.ref(resource, name))
			s.owned(resource+"/"+name, o, err)
			return nil
		},
		"GetMetadata": func(ctx context.Context, s *side) error {
			_, err := s.store.GetMetadata(ctx, s.ref(resource, name))
			return s.errored(err)
		},
		"ListObjects": func(ctx context.Context, s *side) error {
			_, err := s.store.ListObjects(ctx, s.ref(resource, name), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			return s.errored(err)
		},
		"Receipts": func(ctx context.Context, s *side) error {
			all, _, err := s.store.Receipts(ctx, s.ref(deployments, "a"), store.Sought{IDs: []int{id}})
			for _, r := range all {
				s.notef("receipt %s of %s", r.Text, r.Pod)
			}
			return s.errored(err)
		},
		"EachLease": func(ctx context.Context, s *side) error {
			return s.errored(s.store.EachLease(ctx, s.ref(deployments, "a"), func() {}, func(l slotlease.Lease) {
				s.notef("Lease of slot %d: holder %q, locks %+v", l.ID, l.Holder, l.Receipt)
			}))
		},
		"GetPod": func(ctx context.Context, s *side) error {
			p, err := s.store.GetPod(ctx, s.namespace, pod)
			s.podRead(pod, p, err)
			return nil
		},
		"GetFullPod": func(ctx context.Context, s *side) error {
			_, err := s.store.GetFullPod(ctx, s.namespace, pod)
			return s.errored(err)
		},
		"ListPods": func(ctx context.Context, s *side) error {
			err := s.store.EachPod(ctx, s.namespace, options, func(pod *metav1.PartialObjectMetadata) { s.notef("shown %s", pod.Name) })
			return s.errored(err)
		},
		"ListFullPods": func(ctx context.Context, s *side) error {
			err := s.store.EachFullPod(ctx, s.namespace, options, func() {}, func(pod *unstructured.Unstructured) { s.notef("shown whole %s", pod.GetName()) })
			return s.errored(err)
		},
		"Resolve and RevisionOf": func(ctx context.Context, s *side) error {
			p, err := s.store.GetPod(ctx, s.namespace, pod)
			s.podRead(pod, p, err)
			if err != nil {
				return nil //nolint:nilerr // noted
			}
			ref, err := watch.Resolve(ctx, s.store, p)
			s.notef("resolved %s: %t", ref, err == nil)
			_, err = s.store.RevisionOf(ctx, p)
			return s.errored(err)
		},
		"Tell": func(ctx context.Context, s *side) error {
			s.clock.Step(time.Minute) // each Event has a name of its own
			owner := store.Owner{Ref: s.ref(resource, name)}
			return s.errored(s.store.Tell(ctx, kubeevent.Event{
				About: owner.About(), Namespace: s.namespace, Reporter: pod, Type: kubeevent.Warning, Reason: "Reason", Message: "message",
			}))
		},
	}
	what := pick(g, slices.Sorted(maps.Keys(requests))...)
	return stepf(requests[what], "%s of %s/%s, slot %d, pod %s, pods %v", what, resource, name, id, pod, options)
}

func (s *side) errored(err error) error {
	s.notef("store: %s", class(err))
	return nil
}

// watch draws a watch, one of idalloc's own streams or a request of its own.
func (g *generator) watch() step {
	g.watches++
	id := fmt.Sprintf("w%d", g.watches)
	switch g.r.IntN(5) {
	case 0:
		resource, name := g.resource(), g.owner()
		return g.stream(id, resource, resource+"/"+name, func(ctx context.Context, s *side) stream {
			return watch.Owner(ctx, s.store, s.ref(resource, name), logr.Discard())
		})
	case 1:
		name := g.pod()
		return g.stream(id, pods, pods+"/"+name, func(ctx context.Context, s *side) stream {
			return watch.Pod(ctx, s.store, s.namespace, name, logr.Discard())
		})
	case 2:
		selector := pick(g, "app=worker", assignment.HoldersSelector("Deployment/a"))
		return g.stream(id, pods, pods+"/"+sentinel, func(ctx context.Context, s *side) stream {
			return watch.Selected(ctx, s.store, s.namespace, selector, logr.Discard())
		})
	}
	return g.rawWatch(id)
}

// stream is what idalloc's streams have in common.
type stream interface {
	Synced() bool
	Changed() <-chan struct{}
}

// sentinel is a live pod that every selector of a watch selects.
const sentinel = "sentinel"

// follow has a side know of a watch.
func (s *side) follow(id, resource, target string) (*watched, context.Context) {
	w := &watched{s: s, resource: resource, target: target, heard: make(chan struct{}, 1)}
	s.watches[id] = w
	return w, context.WithValue(s.ctx, watchName, w)
}

func (g *generator) stream(id, resource, target string, open func(ctx context.Context, s *side) stream) step {
	return stepf(func(ctx context.Context, s *side) error {
		if err := s.fresh(ctx, resource); err != nil {
			return err
		}
		_, of := s.follow(id, resource, target)
		st := open(of, s) //nolint:contextcheck // it ends with the sequence
		for !st.Synced() {
			select {
			case <-st.Changed():
			case <-ctx.Done():
				return fmt.Errorf("%s did not sync: %w", id, ctx.Err())
			}
		}
		return nil
	}, "%s: idalloc's stream of %s until %s changes", id, resource, target)
}

func (g *generator) rawWatch(id string) step {
	resource, name := g.any()
	target := resource + "/" + name
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "fieldSelector": {"metadata.name=" + name}}
	if resource == pods && g.chance(0.6) {
		target = pods + "/" + sentinel
		query.Set("labelSelector", pick(g, "app=worker", "app=worker,"+assignment.HoldersSelector("Deployment/a"), "app in (worker,other)"))
		query.Set("fieldSelector", pick(g, store.LivePods, ""))
	}
	from, back := pick(g, "", "0", "1", "object", "object"), g.r.IntN(5)
	if g.chance(0.25) {
		from = ""
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	return stepf(func(ctx context.Context, s *side) error {
		if err := s.fresh(ctx, resource); err != nil {
			return err
		}
		since := s.from(query, from, "")
		if from == "object" {
			since.Set("resourceVersion", fmt.Sprint(s.meta(resource+"/"+name, back, "resourceVersion")))
		}
		w, of := s.follow(id, resource, target)
		req, err := http.NewRequestWithContext(of, http.MethodGet, s.host+s.path(resource)+"?"+since.Encode(), http.NoBody) //nolint:contextcheck // it ends with the sequence
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := s.client.Do(req) //nolint:bodyclose // closed by who reads it
		if err != nil {
			return err
		}
		go func() { // ends with the sequence
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			w.end()
		}()
		return nil
	}, "%s: watch %s %v from %q (%d versions ago) until %s changes", id, resource, query, from, back, target)
}

// from returns the query with a resourceVersion: none, 0, or the newest that is known.
func (s *side) from(query url.Values, from, match string) url.Values {
	out := url.Values{}
	maps.Copy(out, query)
	switch from {
	case "":
	case "known":
		s.mu.Lock()
		defer s.mu.Unlock()
		out.Set("resourceVersion", "0")
		if len(s.revs) > 0 {
			out.Set("resourceVersion", strconv.FormatInt(s.revs[len(s.revs)-1], 10))
		}
		if match != "" {
			out.Set("resourceVersionMatch", match)
		}
	default:
		out.Set("resourceVersion", from)
	}
	return out
}

// wait draws a look at all watches: each target is changed, and each watch has to show that.
func (g *generator) wait() step {
	g.values++
	touch := fmt.Sprintf("t%d", g.values)
	return stepf(func(ctx context.Context, s *side) error {
		ids := slices.Sorted(maps.Keys(s.watches))
		targets := map[string]*watched{}
		for _, id := range ids {
			targets[s.watches[id].target] = s.watches[id]
		}
		// The sentinel is last: a watcher of many pods sees the others before it.
		for _, target := range slices.SortedFunc(maps.Keys(targets), func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, sentinel), strings.Count(b, sentinel)), cmp.Compare(a, b))
		}) {
			if err := s.touch(ctx, targets[target], touch+" of "+target); err != nil {
				return err
			}
		}
		shown, cancel := context.WithTimeout(ctx, 10*time.Second) // by far
		defer cancel()
		for _, id := range ids {
			if err := s.watches[id].until(shown, touch+" of "+s.watches[id].target); err != nil {
				s.notef("%s did not show %s: %v", id, touch, err)
			}
		}
		for _, id := range ids {
			for _, line := range s.told(s.watches[id]) {
				s.notef("%s: %s", id, line)
			}
		}
		return nil
	}, "compare all watches")
}

// touch changes a watch's target, which is made if it is not there.
func (s *side) touch(ctx context.Context, w *watched, value string) error {
	name := w.target[len(w.resource)+1:]
	meta := object{"name": name, "labels": object{"app": "worker", receipt.IDLabel: "0", receipt.OwnerLabel: assignment.OwnerLabelValue("Deployment/a")}}
	o := object{apiVersion: "v1", "kind": "Pod", metadata: meta, "spec": podSpec()}
	if w.resource != pods {
		o = ownerManifest(w.resource, meta, 1)
	}
	if err := s.ask(ctx, http.MethodPost, s.path(w.resource), by("touch"), "application/json", o); err != nil {
		return err
	}
	return s.patch(ctx, w.resource, name, "touch", mergePatch, object{metadata: object{annotations: object{"touch": value}}})
}
