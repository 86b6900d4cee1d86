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
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// memory is what is remembered of one owner between passes. A new process starts without it, and every decision is safe without it. Each field explains what
// its loss costs.
type memory struct {
	// read is the owner as last read, valid until its generation grows. Lost: one more GET.
	read store.Owner
	// news counts events of the owner, except those that the controller's own proposals cause. Lost: a pass writes all proposals that can wait before it looks
	// again.
	news atomic.Int64
	// failures is the back-off of passes. Passes can fail for minutes while a watch is behind. Lost: the next pass comes at once.
	failures *pace.Backoff
	// forbidden is since when the controller has lacked a permission, zero if it lacks none. Lost: the Event about that comes five seconds later.
	forbidden time.Time
	// frozen is since when the owner has been frozen, zero if it is not. Lost: the same.
	frozen time.Time
	// unused are the generations of ReplicaSets that had no pods and no replicas. Lost: one GET for each.
	unused map[types.UID]int64

	// counted is since when the owner has had its count, and its pods another one. Lost: pods that restart with a new count wait again until it is stable.
	counted counted
	// ends is when pods have ended. Lost: each free id rests again, from then on.
	ends decision.Ends

	outside outside
	rollout rollout
	agents  agentMemory
	mapBackoff
	// writes are the back-offs of writes on pods. Lost: each write is tried at once, and a pod whose write was refused gets a slot until it is refused again.
	writes map[writeKey]*backoff
}

// outside is about pods that the cache does not have: those that run idalloc themselves.
type outside struct {
	// found is true if one of them locks a slot or waits for one, for example a pod whose controller is gone. If the plan did not know that pod, the map would
	// give its slot to others, and T3 would take it from them each time. Or slots would not seem scarce, and a pod that never runs would get one. Lost: see
	// listed.
	found bool
	// listed is true if found is known. Lost: one list before the map is written.
	listed bool
	// cached has the names of pods that the cache has or had, if they are alive or the map still names them. Lost: one list for a pod that is gone.
	cached map[string]bool
	// shown is a hash of the last list, and relist the delay until the next one. Lost: the next list comes a few seconds sooner.
	shown  uint64
	relist time.Duration
}

// rollout is what was seen of a rolling update.
type rollout struct {
	// ending is when each Terminating pod was first seen Terminating, by UID. Lost: its grace period counts again before the pod counts as lost.
	ending map[string]time.Time
	// older are the other pods of older revisions, by UID. quiet is since when none of these was removed. Lost: ten seconds count again.
	older map[string]bool
	quiet time.Time
}

// mapBackoff is the back-off of writes of the map. Lost: one write that others undo comes at once.
type mapBackoff struct {
	// last is the map as last written. If others undo it again and again, the next write waits until the time until.
	last   assignment.State
	undone pace.Undone
	until  time.Time
	// failing counts how often in a row the map changed only for pods whose programs failed. Further changes for such pods wait and share the next write.
	failing pace.Undone
	// err is why the last write of the map failed, or nil.
	err error
}

// since sets at to the time at which a condition began to hold, and to the zero time while it does not hold.
func since(at *time.Time, holds bool, now time.Time) {
	if !holds {
		*at = time.Time{}
	} else if at.IsZero() {
		*at = now
	}
}

// memory returns the memory of an owner, and creates it if there is none.
func (x *Reconciler) memory(ref kinds.Ref) *memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.memories[ref]
	if m == nil {
		m = &memory{failures: pace.New(rand.Float64).Backoff()}
		x.memories[ref] = m
	}
	return m
}

// hear counts news of an owner, and returns ref.
func (x *Reconciler) hear(ref kinds.Ref) kinds.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.memories[ref]; m != nil {
		m.news.Add(1)
	}
	return ref
}

// forget deletes the memory and the metrics of an owner that is gone.
func (x *Reconciler) forget(ref kinds.Ref) {
	x.metrics.forget(ref)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.memories, ref)
}

// again returns the delay until pods that run idalloc themselves are listed again. It grows while the lists show the same.
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

// left returns how long the map must not be written.
func (b *mapBackoff) left(now time.Time) time.Duration { return b.until.Sub(now) }

// wrote records a write of the map. If a write repeats a change, others have undone it since the last write: at once, as an admission webhook does, or so fast
// that the next write already meets their next change.
func (b *mapBackoff) wrote(is assignment.State, d decision.Decision, now time.Time, err error) {
	next := *d.Plan.Next
	b.until = time.Time{}
	if b.last.Undone(is, next) || !is.Row.Same(b.last.Row) && !next.Row.Same(is.Row) {
		b.undone.Again(now)
		b.until = now.Add(b.undone.Damping())
	}
	if errors.Is(err, request.ErrConflict) {
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

// backoff is the back-off of one kind of write on one pod.
type backoff struct {
	// says is the content that was last written. If another writer undoes it again and again, each write waits longer.
	says   string
	undone pace.Undone
	// err is why the last try failed, or nil. times is how many tries failed in a row, and version the pod's resourceVersion at the last one.
	err     error
	times   int
	version string
	delay   *pace.Backoff // nil before the first failure
	until   time.Time
	// every is the least time between two such writes, and at the time of the last one.
	every time.Duration
	at    time.Time
}

// countEvery: a pod hears of at most one new count in this time, however often the count changes. Each write costs the API server, and each program that
// follows the count starts over.
const countEvery = time.Second

// manyFailures is the number of failed tries after which a write counts as refused, for any error. After that many conflicts with a pod that changes all the
// time, its events no longer cause a new try at once.
const manyFailures = 6

// backoff returns the back-off of one kind of write on a pod. Change the result only under pass.writing.
func (m *memory) backoff(uid types.UID, of step) *backoff {
	key := writeKey{uid, of}
	if m.writes[key] == nil {
		if m.writes == nil {
			m.writes = map[writeKey]*backoff{}
		}
		m.writes[key] = &backoff{}
		if of == stepCount {
			m.writes[key].every = countEvery
		}
	}
	return m.writes[key]
}

// left returns how long this content must not be written on the pod.
func (b *backoff) left(pod *podMeta, says string, now time.Time) time.Duration {
	switch {
	case b.err == nil && b.says == says && says != "":
		return max(b.undone.Left(now), b.at.Add(b.every).Sub(now))
	case b.err == nil:
		return b.at.Add(b.every).Sub(now)
	case errors.Is(b.err, request.ErrConflict) && b.times < manyFailures && b.version != pod.ResourceVersion:
		return 0
	}
	return b.until.Sub(now)
}

func (b *backoff) accepted(says string, now time.Time) {
	if b.says == says {
		b.undone.Again(now)
	}
	b.says, b.err, b.times, b.delay, b.at = says, nil, 0, nil, now
}

func (b *backoff) failed(pod *podMeta, err error, now time.Time) {
	if b.delay == nil {
		b.delay = pace.New(rand.Float64).Backoff()
	}
	b.err, b.version, b.until = err, pod.ResourceVersion, now.Add(b.delay.Next())
	if b.times++; b.times >= manyFailures { // round up, so that one pass serves many such pods
		b.until = b.until.Truncate(time.Second).Add(time.Second)
	}
}

// refused reports whether the write cannot be done, as far as is known.
func (b *backoff) refused() bool {
	return b.err != nil && (b.times >= manyFailures || refused(b.err))
}

// refused reports whether no retry helps: the API server refuses the content of the write, or the pod's resourceVersion is no token.
func refused(err error) bool {
	return errors.Is(err, request.ErrRefused) || errors.Is(err, request.ErrNotKept) || errors.Is(err, receipt.ErrNoToken)
}

// refuses returns why a write on the pod is refused, or nil.
func (m *memory) refuses(uid types.UID) error {
	if a := m.writes[writeKey{uid, m.refusal(uid)}]; a != nil {
		return a.err
	}
	return nil
}

// refusal returns the step of the pod whose write is refused, or "".
func (m *memory) refusal(uid types.UID) step {
	for _, of := range []step{stepTake, stepBegin, stepCount, stepPropose} {
		if a := m.writes[writeKey{uid, of}]; a != nil && a.refused() {
			return of
		}
	}
	return ""
}

// recall deletes the back-offs of pods that are gone.
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

// ends records which pods are Terminating, and when a pod of an older revision was last removed. A grace period counts from when it was first seen, because the
// API server's clock may differ.
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
