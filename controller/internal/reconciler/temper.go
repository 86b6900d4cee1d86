package reconciler

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// temper is how patient the reconciles of an owner are by now. A restart loses nothing that matters with it.
type temper struct {
	// read is the owner as last read, good until its generation grows.
	read store.Owner
	// failures is when an owner is tried again of which a pass failed, or something changed meanwhile. A watch that is behind shows so for minutes.
	failures *pace.Backoff
	// strangers says that the cache lacks a pod that locks a slot or waits for one, such as a pod whose controller is gone. If the plan did not know it, the
	// map would give its slot to others, and T3 would take it from them each time. Or slots would not seem scarce, and one would go to a pod that never runs.
	strangers bool
	// listed says that strangers is known.
	listed bool
	// showed is what the last list of pods that take for themselves showed, and relist when the next one comes.
	showed uint64
	relist time.Duration
	// seen has the names of pods that the cache has or had, of those that live or that the map names still.
	seen map[string]bool
	// wrote is the map as it was written last. What was undone is not written again at once each time: the next write comes at until.
	wrote  assignment.State
	undone pace.Undone
	until  time.Time
	// failing is how often in a row the map changed only for pods whose programs failed. What else changes for such pods is gathered for the next write.
	failing pace.Undone
	// unwritten is why the map could not be written last, nil if it could.
	unwritten error
	// attempts are what is known of writes on pods.
	attempts map[attempted]*attempt
	memory   memory
	// forbidden is since when the controller lacks a right, zero if it lacks none.
	forbidden time.Time
	// ending is when each Terminating pod was first seen so, and older are the other pods of older revisions, by UID. quiet is since when none of these went.
	ending map[string]time.Time
	older  map[string]bool
	quiet  time.Time
	// counted is since when the owner has its count. A controller that starts waits again.
	counted counted
	// frozen is since when the owner has been frozen, zero if it is not. unused are the generations of ReplicaSets that had no pods and no replicas.
	frozen time.Time
	unused map[types.UID]int64
	// news counts what the controller has heard of the owner that it did not tell a process itself.
	news atomic.Int64
}

func (x *Reconciler) temper(ref store.Ref) *temper {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tempers[ref]
	if t == nil {
		t = &temper{failures: pace.New(rand.Float64).Backoff()}
		x.tempers[ref] = t
	}
	return t
}

// hear takes in news of an owner, and returns it.
func (x *Reconciler) hear(ref store.Ref) store.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tempers[ref]; t != nil {
		t.news.Add(1)
	}
	return ref
}

// calm forgets an owner that is gone.
func (x *Reconciler) calm(ref store.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tempers, ref)
}

// again returns when pods that take for themselves are listed again: at growing intervals for as long as lists show the same.
func (t *temper) again(pods []decision.Pod) time.Duration {
	h := fnv.New64a()
	for _, q := range pods {
		_, _ = fmt.Fprintln(h, q.Name, q.Version)
	}
	if shows := h.Sum64(); shows != t.showed {
		t.showed, t.relist = shows, 0
	}
	t.relist = min(max(2*t.relist, mixedAfter), mixedLast)
	return t.relist
}

// damped returns for how long the map is left alone.
func (t *temper) damped(now time.Time) time.Duration { return t.until.Sub(now) }

// proposed takes in a write of the map. One that changes again what others have changed since the last one says that it was undone, be it at once, by an
// admission webhook, or so fast that the next write meets the next change.
func (t *temper) proposed(is assignment.State, d decision.Decision, now time.Time, err error) {
	next := *d.Plan.Next
	t.until = time.Time{}
	if t.wrote.Undone(is, next) || !is.Row.Same(t.wrote.Row) && !next.Row.Same(is.Row) {
		t.undone.Again(now)
		t.until = now.Add(t.undone.Damping())
	}
	if errors.Is(err, store.ErrConflict) {
		return
	}
	if d.Failing {
		t.failing.Again(now)
	}
	t.wrote = next
}

// attempted is a kind of write on a pod.
type attempted struct {
	uid  types.UID
	step step
}

// attempt is what is known of a kind of write on a pod. Without it, one that fails is repeated at once.
type attempt struct {
	// says is what was written last. What another writer undoes again and again is written later each time.
	says   string
	undone pace.Undone
	// err is why the last try failed, nil if it did not. times is how many failed in a row, and version the pod's resourceVersion at the last one.
	err     error
	times   int
	version string
	backoff *pace.Backoff // nil before the first failure
	until   time.Time
}

// stubborn is after how many tries a pod counts as one that cannot be written, whatever the errors are. After a few conflicts with a pod that changes
// all the time, its news brings no new try any more.
const stubborn = 6

// attempt returns what is known of a kind of write on a pod. The result is changed under the lock of the pass.
func (t *temper) attempt(uid types.UID, of step) *attempt {
	key := attempted{uid, of}
	if t.attempts[key] == nil {
		if t.attempts == nil {
			t.attempts = map[attempted]*attempt{}
		}
		t.attempts[key] = &attempt{}
	}
	return t.attempts[key]
}

// left returns for how long this is not to be written on the pod.
func (a *attempt) left(pod *podMeta, says string, now time.Time) time.Duration {
	switch {
	case a.err == nil && a.says == says && says != "":
		return a.undone.Left(now)
	case a.err == nil, errors.Is(a.err, store.ErrConflict) && a.times < stubborn && a.version != pod.ResourceVersion:
		return 0
	}
	return a.until.Sub(now)
}

func (a *attempt) accepted(says string, now time.Time) {
	if a.says == says {
		a.undone.Again(now)
	}
	a.says, a.err, a.times, a.backoff = says, nil, 0, nil
}

func (a *attempt) failed(pod *podMeta, err error, now time.Time) {
	if a.backoff == nil {
		a.backoff = pace.New(rand.Float64).Backoff()
	}
	a.err, a.version, a.until = err, pod.ResourceVersion, now.Add(a.backoff.Next())
	if a.times++; a.times >= stubborn { // one pass serves many such pods
		a.until = a.until.Truncate(time.Second).Add(time.Second)
	}
}

// refused reports whether the write cannot be done, as far as that can be known.
func (a *attempt) refused() bool {
	return a.err != nil && (a.times >= stubborn || refused(a.err))
}

// refused reports whether the API server refuses what is written.
func refused(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrNotKept)
}

// refuses returns why a write on the pod is refused, nil if none is.
func (t *temper) refuses(uid types.UID) error {
	if a := t.attempts[attempted{uid, t.refusal(uid)}]; a != nil {
		return a.err
	}
	return nil
}

// refusal returns which write on the pod is refused, empty if none is.
func (t *temper) refusal(uid types.UID) step {
	for _, of := range []step{stepTake, stepBegin, stepCount, stepPropose} {
		if a := t.attempts[attempted{uid, of}]; a != nil && a.refused() {
			return of
		}
	}
	return ""
}

// recall forgets what was tried on pods that are gone.
func (t *temper) recall(metas map[string]*podMeta) {
	if len(t.attempts) == 0 {
		return
	}
	live := make(map[types.UID]bool, len(metas))
	for _, meta := range metas {
		live[meta.UID] = true
	}
	maps.DeleteFunc(t.attempts, func(key attempted, _ *attempt) bool { return !live[key.uid] })
}

// ends takes in which pods are Terminating, and when a pod of an older revision was removed. A grace period counts from when its begin was seen: the API
// server's clock may be another one.
func (t *temper) ends(w *decision.World, metas map[string]*podMeta) {
	was, older := t.ending, map[string]bool{}
	t.ending = map[string]time.Time{}
	for i := range w.Pods {
		q := &w.Pods[i]
		if !q.Terminating {
			if q.Owned && q.Controller != w.Owner.Revision {
				older[q.UID] = true
			}
			continue
		}
		since, known := was[q.UID]
		if !known {
			since = w.Now
		}
		t.ending[q.UID], q.LostAt = since, since
		if grace := metas[q.Name].DeletionGracePeriodSeconds; grace != nil {
			q.LostAt = since.Add(time.Duration(min(*grace, math.MaxInt64/int64(time.Second))) * time.Second)
		}
	}
	for uid := range t.older {
		if !older[uid] {
			t.quiet = w.Now
		}
	}
	if t.older = older; t.quiet.IsZero() {
		t.quiet = w.Now
	}
	w.QuietSince = t.quiet
}
