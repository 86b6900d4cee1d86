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

// memory is what is remembered of one owner between passes. A process that starts has none of it, and everything that is decided is safe without it. Each
// field says what its loss costs.
type memory struct {
	// read is the owner as last read, good until its generation grows. Lost: one more GET.
	read store.Owner
	// news counts what was heard of the owner but for what the controller told processes itself. Lost: a pass tells all that can wait before it looks again.
	news atomic.Int64
	// failures is the back-off of passes. A watch that is behind makes them fail for minutes. Lost: the next pass comes at once.
	failures *pace.Backoff
	// forbidden is since when the controller lacks a right, zero if it lacks none. Lost: the Event about that comes five seconds later.
	forbidden time.Time
	// frozen is since when the owner has been frozen, zero if it is not. Lost: the same.
	frozen time.Time
	// unused are the generations of ReplicaSets that had no pods and no replicas. Lost: one GET for each.
	unused map[types.UID]int64

	// counted is since when the owner has its count. Lost: pods that start again with a new count wait again for it to stand still.
	counted counted

	outside outside
	rollout rollout
	agents  agentMemory
	mapBackoff
	// writes are the back-offs of writes on pods. Lost: each is tried at once, and one that was refused has a slot until then.
	writes map[writeKey]*backoff
}

// outside is about pods that the cache does not have: those that take for themselves.
type outside struct {
	// found says that one of them locks a slot or waits for one, such as a pod whose controller is gone. If the plan did not know it, the map would give its slot
	// to others, and T3 would take it from them each time. Or slots would not seem scarce, and one would go to a pod that never runs. Lost: see listed.
	found bool
	// listed says that found is known. Lost: one list before the map is written.
	listed bool
	// cached has the names of pods that the cache has or had, of those that live or that the map still names. Lost: one list for a pod that is gone.
	cached map[string]bool
	// shown is what the last list showed, and relist when the next one comes. Lost: it comes a few seconds sooner.
	shown  uint64
	relist time.Duration
}

// rollout is what was seen of a rolling update.
type rollout struct {
	// ending is when each Terminating pod was first seen so, by UID. Lost: its grace period counts again, before it counts as lost.
	ending map[string]time.Time
	// older are the other pods of older revisions, by UID, and quiet is since when none of these went. Lost: ten seconds count again.
	older map[string]bool
	quiet time.Time
}

// mapBackoff is the back-off of writes of the map. Lost: a write that others undo comes at once, for once.
type mapBackoff struct {
	// last is the map as it was written last. What was undone is not written again at once each time: the next write comes at until.
	last   assignment.State
	undone pace.Undone
	until  time.Time
	// failing is how often in a row the map changed only for pods whose programs failed. What else changes for such pods is gathered for the next write.
	failing pace.Undone
	// err is why the map could not be written last, nil if it could.
	err error
}

// since keeps in at since when a condition holds, and the zero time while it does not.
func since(at *time.Time, holds bool, now time.Time) {
	if !holds {
		*at = time.Time{}
	} else if at.IsZero() {
		*at = now
	}
}

// memory returns what is remembered of an owner.
func (x *Reconciler) memory(ref store.Ref) *memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.memories[ref]
	if m == nil {
		m = &memory{failures: pace.New(rand.Float64).Backoff()}
		x.memories[ref] = m
	}
	return m
}

// hear counts news of an owner, and returns it.
func (x *Reconciler) hear(ref store.Ref) store.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.memories[ref]; m != nil {
		m.news.Add(1)
	}
	return ref
}

// forget drops what is known of an owner that is gone.
func (x *Reconciler) forget(ref store.Ref) {
	x.metrics.forget(ref)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.memories, ref)
}

// again returns when pods that take for themselves are listed again: at growing intervals for as long as lists show the same.
func (o *outside) again(pods []decision.Pod) time.Duration {
	h := fnv.New64a()
	for _, q := range pods {
		_, _ = fmt.Fprintln(h, q.Name, q.Version)
	}
	if shows := h.Sum64(); shows != o.shown {
		o.shown, o.relist = shows, 0
	}
	o.relist = min(max(2*o.relist, mixedAfter), mixedLast)
	return o.relist
}

// left returns for how long the map is left alone.
func (b *mapBackoff) left(now time.Time) time.Duration { return b.until.Sub(now) }

// wrote notes a write of the map. One that changes again what others have changed since the last one says that it was undone, be it at once, by an
// admission webhook, or so fast that the next write meets the next change.
func (b *mapBackoff) wrote(is assignment.State, d decision.Decision, now time.Time, err error) {
	next := *d.Plan.Next
	b.until = time.Time{}
	if b.last.Undone(is, next) || !is.Row.Same(b.last.Row) && !next.Row.Same(is.Row) {
		b.undone.Again(now)
		b.until = now.Add(b.undone.Damping())
	}
	if errors.Is(err, store.ErrConflict) {
		return
	}
	if d.Failing {
		b.failing.Again(now)
	}
	b.last = next
}

// writeKey is a kind of write on a pod.
type writeKey struct {
	uid  types.UID
	step step
}

// backoff is that of a kind of write on a pod.
type backoff struct {
	// says is what was written last. What another writer undoes again and again is written later each time.
	says   string
	undone pace.Undone
	// err is why the last try failed, nil if it did not. times is how many failed in a row, and version the pod's resourceVersion at the last one.
	err     error
	times   int
	version string
	delay   *pace.Backoff // nil before the first failure
	until   time.Time
}

// manyFailures is after how many tries a pod counts as one that cannot be written, whatever the errors are. After a few conflicts with a pod that changes
// all the time, its news brings no new try any more.
const manyFailures = 6

// backoff returns that of a kind of write on a pod. The result is changed under the lock of the pass.
func (m *memory) backoff(uid types.UID, of step) *backoff {
	key := writeKey{uid, of}
	if m.writes[key] == nil {
		if m.writes == nil {
			m.writes = map[writeKey]*backoff{}
		}
		m.writes[key] = &backoff{}
	}
	return m.writes[key]
}

// left returns for how long this is not to be written on the pod.
func (b *backoff) left(pod *podMeta, says string, now time.Time) time.Duration {
	switch {
	case b.err == nil && b.says == says && says != "":
		return b.undone.Left(now)
	case b.err == nil, errors.Is(b.err, store.ErrConflict) && b.times < manyFailures && b.version != pod.ResourceVersion:
		return 0
	}
	return b.until.Sub(now)
}

func (b *backoff) accepted(says string, now time.Time) {
	if b.says == says {
		b.undone.Again(now)
	}
	b.says, b.err, b.times, b.delay = says, nil, 0, nil
}

func (b *backoff) failed(pod *podMeta, err error, now time.Time) {
	if b.delay == nil {
		b.delay = pace.New(rand.Float64).Backoff()
	}
	b.err, b.version, b.until = err, pod.ResourceVersion, now.Add(b.delay.Next())
	if b.times++; b.times >= manyFailures { // one pass serves many such pods
		b.until = b.until.Truncate(time.Second).Add(time.Second)
	}
}

// refused reports whether the write cannot be done, as far as that can be known.
func (b *backoff) refused() bool {
	return b.err != nil && (b.times >= manyFailures || refused(b.err))
}

// refused reports whether the API server refuses what is written.
func refused(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrNotKept)
}

// refuses returns why a write on the pod is refused, nil if none is.
func (m *memory) refuses(uid types.UID) error {
	if a := m.writes[writeKey{uid, m.refusal(uid)}]; a != nil {
		return a.err
	}
	return nil
}

// refusal returns which write on the pod is refused, empty if none is.
func (m *memory) refusal(uid types.UID) step {
	for _, of := range []step{stepTake, stepBegin, stepCount, stepPropose} {
		if a := m.writes[writeKey{uid, of}]; a != nil && a.refused() {
			return of
		}
	}
	return ""
}

// recall forgets what was tried on pods that are gone.
func (m *memory) recall(metas map[string]*podMeta) {
	if len(m.writes) == 0 {
		return
	}
	live := make(map[types.UID]bool, len(metas))
	for _, meta := range metas {
		live[meta.UID] = true
	}
	maps.DeleteFunc(m.writes, func(key writeKey, _ *backoff) bool { return !live[key.uid] })
}

// ends notes which pods are Terminating, and when a pod of an older revision was removed. A grace period counts from when its begin was seen: the API
// server's clock may be another one.
func (r *rollout) ends(w *decision.World, metas map[string]*podMeta) {
	was, older := r.ending, map[string]bool{}
	r.ending = map[string]time.Time{}
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
		r.ending[q.UID], q.LostAt = since, since
		if grace := metas[q.Name].DeletionGracePeriodSeconds; grace != nil {
			q.LostAt = since.Add(time.Duration(min(*grace, math.MaxInt64/int64(time.Second))) * time.Second)
		}
	}
	for uid := range r.older {
		if !older[uid] {
			r.quiet = w.Now
		}
	}
	if r.older = older; r.quiet.IsZero() {
		r.quiet = w.Now
	}
	w.QuietSince = r.quiet
}
