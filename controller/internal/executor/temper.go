package executor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// temper is how patient the reconciles of an owner are by now. A restart loses nothing that matters with it.
type temper struct {
	// read is the owner as last read, good until its generation grows.
	read store.Owner
	// conflicts is when an owner is tried again of which something changed meanwhile. A watch that is behind shows so for minutes.
	conflicts *pace.Backoff
	// strangers says that the cache lacks a pod that locks a slot or waits for one, such as a pod whose controller is gone. If the plan did not know it, the
	// map would give its slot to others, and T3 would take it from them each time. Or slots would not seem scarce, and one would go to a pod that never runs.
	strangers bool
	// listed says that strangers is known.
	listed bool
	// seen has the names of pods that the cache has or had, of those that live or that the map names still.
	seen map[string]bool
	// wrote is the map as it was written last. What was undone is not written again at once each time: the next write comes at until.
	wrote  assignment.State
	undone pace.Undone
	until  time.Time
	// failing is how often in a row the map changed only for pods whose programs failed. What else changes for such pods is gathered for the next write.
	failing pace.Undone
	// clashes is how often in a row T3 took slots from pods again: what the plan does not know yet, it knows later.
	clashes pace.Undone
	// unkept is how often in a row admission or another writer changed a receipt that was written.
	unkept pace.Undone
	// wroteOn is what was written last on each pod, by UID. untold is how often in a row another writer removed what a container reads.
	wroteOn map[types.UID]string
	untold  pace.Undone
	memory  memory
	// forbidden is since when the controller lacks a right, zero if it lacks none.
	forbidden time.Time
	// news counts what the controller has heard of the owner that it did not tell a process itself.
	news atomic.Int64
}

func (x *Executor) temper(ref store.Ref) *temper {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tempers[ref]
	if t == nil {
		t = &temper{conflicts: pace.New(rand.Float64).Backoff()}
		x.tempers[ref] = t
	}
	return t
}

// hear takes in news of an owner, and returns it.
func (x *Executor) hear(ref store.Ref) store.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tempers[ref]; t != nil {
		t.news.Add(1)
	}
	return ref
}

// calm forgets an owner that is gone.
func (x *Executor) calm(ref store.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tempers, ref)
}

// damped returns for how long the map is left alone.
func (t *temper) damped(now time.Time) time.Duration { return t.until.Sub(now) }

// proposed takes in a write of the map. One that changes again what others have changed since the last one says that it was undone, be it at once, by an
// admission webhook, or so fast that the next write meets the next change.
func (t *temper) proposed(is assignment.State, d heart.Decision, now time.Time, err error) {
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

// took takes in what T2 wrote. A pod that runs had a receipt, which another writer changed. So it is with one that T2 gave the same slot last.
func (t *temper) took(takes []heart.Take, written map[string]*podMeta, now time.Time, err error) {
	undone := errors.Is(err, store.ErrNotKept)
	for _, take := range takes {
		undone = take.Begun || t.repeats(written[take.Pod], fmt.Sprint("slot ", take.ID)) || undone
	}
	if undone {
		t.unkept.Again(now)
	}
}

// due leaves out what another writer removed again, if that is to wait.
func (t *temper) due(all []heart.Publish, metas map[string]*podMeta, now time.Time) []heart.Publish {
	if t.untold.Left(now) <= 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(b heart.Publish) bool { return t.wroteOn[metas[b.Pod].UID] == wordsOf(b) })
}

// published takes in what pods were told.
func (t *temper) published(all []heart.Publish, written map[string]*podMeta, now time.Time) {
	undone := false
	for _, b := range all {
		undone = t.repeats(written[b.Pod], wordsOf(b)) || undone
	}
	if undone {
		t.untold.Again(now)
	}
}

func wordsOf(b heart.Publish) string { return "id " + b.Words.ID + " of " + b.Words.Count }

// repeats takes in what was written on a pod, nil if that failed, and reports whether it is what was written there last.
func (t *temper) repeats(pod *podMeta, what string) bool {
	if pod == nil {
		return false
	}
	if t.wroteOn == nil {
		t.wroteOn = map[types.UID]string{}
	}
	was := t.wroteOn[pod.UID]
	t.wroteOn[pod.UID] = what
	return was == what
}
