package checks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// linear is the promise that claims, releases, deaths and sweeps happened as if one after the other.
const linear = "linearizability"

// deed is a kind of operation on an id.
type deed string

const (
	// claimed: from when a process began to wait to when its work began to act under the id.
	claimed deed = "claim"
	// released: from when the work stopped to when the map does not name its pod any more.
	released deed = "release"
	// died: the same for a process that was killed.
	died deed = "death"
	// swept: a write of idalloc on a clean map took a pod's entry out.
	swept deed = "sweep"
)

// input is what an operation does. It has no output: what happened is legal or not.
type input struct {
	id   int
	deed deed
	// process acts; pod is its name and UID.
	process, pod string
	token        int64
	// unordered says that the token may be lower than an earlier one.
	unordered bool
}

func (i input) String() string {
	switch i.deed {
	case claimed:
		return fmt.Sprintf("%s by %s with token %d", i.deed, i.process, i.token)
	case swept:
		return fmt.Sprintf("%s of %s", i.deed, i.pod)
	case released, died:
	}
	return fmt.Sprintf("%s of %s", i.deed, i.process)
}

// slot is the sequential model of one id.
type slot struct {
	holder, holderPod string // empty when it is free
	// token is the highest so far, lastPod who had it.
	token   int64
	lastPod string
}

// step returns whether the operation may happen now, and the slot after it.
func (s slot) step(i input) (bool, slot) {
	switch i.deed {
	case claimed:
		if s.holder != "" {
			return false, s
		}
		low := i.token < s.token || (i.token == s.token && i.pod != s.lastPod)
		if low && s.lastPod != "" && !i.unordered {
			return false, s
		}
		s.holder, s.holderPod = i.process, i.pod
		if i.token > s.token || s.lastPod == "" || i.unordered {
			s.token, s.lastPod = i.token, i.pod
		}
		return true, s
	case released, died:
		if s.holder != i.process {
			return false, s
		}
		s.holder, s.holderPod = "", ""
		return true, s
	case swept:
		return s.holderPod != i.pod, s
	}
	return false, s
}

// linearSteps bounds the search of one history. A history has a few dozen operations and needs about as many steps.
const linearSteps = 200_000

// verdict searches for an order of the operations that the model permits. Time in a bubble stands still while it
// searches, so it counts its steps; in real time it also ends after a minute. Unknown is what it says then.
func verdict(operations []porcupine.Operation) porcupine.CheckResult {
	var steps atomic.Int64
	model := porcupine.Model{
		Partition: byID,
		Init:      func() any { return slot{} },
		Step: func(state, in, _ any) (bool, any) {
			if steps.Add(1) > linearSteps {
				return false, state
			}
			s, _ := state.(slot)
			i, _ := in.(input)
			return s.step(i)
		},
	}
	result := porcupine.CheckOperationsTimeout(model, operations, time.Minute)
	if steps.Load() > linearSteps {
		return porcupine.Unknown
	}
	return result
}

// byID parts operations that cannot affect one another.
func byID(all []porcupine.Operation) [][]porcupine.Operation {
	parts := map[int][]porcupine.Operation{}
	for _, o := range all {
		parts[idOf(o)] = append(parts[idOf(o)], o)
	}
	out := make([][]porcupine.Operation, 0, len(parts))
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, parts[id])
	}
	return out
}

func idOf(o porcupine.Operation) int {
	i, _ := o.Input.(input)
	return i.id
}

// never is the return of an operation that is under way at the end.
const never = math.MaxInt64

// recorder notes a history's operations. It sees what each process acts under and what is stored of the owner.
type recorder struct {
	w          *world.World
	judge      *Judge
	operations []porcupine.Operation
	clients    map[*world.Process]int
	// waiting says since when a process has waited, holding what it acts under.
	waiting map[*world.Process]time.Duration
	holding map[*world.Process]input
	// leaving are the operations by id that free it and have no return yet.
	leaving map[int][]int
	// fell are the tokens to which ids fell with holders that are not recorded.
	fell map[int]int64
}

func newRecorder(j *Judge) *recorder {
	return &recorder{
		w: j.w, judge: j, clients: map[*world.Process]int{}, waiting: map[*world.Process]time.Duration{}, holding: map[*world.Process]input{}, leaving: map[int][]int{},
		fell: map[int]int64{},
	}
}

// look is told what a process acts under, nil for nothing.
func (r *recorder) look(p *world.Process, b *identity.Identity) {
	held, holds := r.holding[p]
	if b != nil && !r.judge.isGhost(p) {
		if holds && held.id == b.ID && held.token == b.Epoch {
			return
		}
		if holds {
			r.freed(p, held)
		}
		r.claimed(p, *b)
		return
	}
	if b != nil && r.judge.isForgotten(*b) { // a pod that was deleted by force: its successor's token exceeds this one, and no other
		r.fell[b.ID] = b.Epoch
	}
	if holds {
		r.freed(p, held)
	}
	if _, known := r.waiting[p]; !known {
		r.waiting[p] = r.w.Now()
	}
}

// handOn has next hold what its pod's process before it held.
func (r *recorder) handOn(before, next *world.Process) {
	if held, holds := r.holding[before]; holds {
		r.holding[next] = held
		delete(r.holding, before)
	}
}

func (r *recorder) claimed(p *world.Process, b identity.Identity) {
	fell, unseen := r.fell[b.ID]
	delete(r.fell, b.ID)
	i := input{
		id: b.ID, deed: claimed, process: p.ID + "/" + p.UID, pod: world.PodKey(p.Pod, p.UID), token: b.Epoch,
		unordered: r.judge.isForgotten(b) || (unseen && b.Epoch >= fell),
	}
	since, known := r.waiting[p]
	if !known {
		since = r.w.Now()
	}
	r.add(p, i, since, r.w.Now())
	r.holding[p] = i
	delete(r.waiting, p)
	for _, n := range r.leaving[b.ID] { // an id that is claimed was free
		r.operations[n].Return = int64(r.w.Now())
	}
	delete(r.leaving, b.ID)
}

func (r *recorder) freed(p *world.Process, held input) {
	held.deed = released
	if p.Dead {
		held.deed = died
	}
	r.add(p, held, r.w.Now(), never)
	r.leaving[held.id] = append(r.leaving[held.id], len(r.operations)-1)
	r.waiting[p] = r.w.Now()
	delete(r.holding, p)
}

func (r *recorder) add(p *world.Process, i input, call, back time.Duration) {
	client, known := r.clients[p]
	if !known {
		client = len(r.clients)
		r.clients[p] = client
	}
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: i, Call: int64(call), Return: int64(back)})
}

// stored is told of every write to the owner.
func (r *recorder) stored(v *server.Version) {
	is, _ := entries(v)
	for id := range r.leaving {
		r.leaving[id] = slices.DeleteFunc(r.leaving[id], func(n int) bool {
			i, _ := r.operations[n].Input.(input)
			gone := !is[id].names(i.pod)
			if gone {
				r.operations[n].Return = int64(r.w.Now())
			}
			return gone
		})
	}
	r.swept(v, is)
}

// swept notes the entries that a write of idalloc took out of a clean map: nobody may act under them. In strict mode
// they may until the quarantine is over.
func (r *recorder) swept(v *server.Version, is map[int]entry) {
	was, clean := entries(v.Before)
	if _, ours := entries(v); !clean || !ours || r.w.Profile.FenceAfter > 0 {
		return
	}
	for id, e := range was {
		if is[id] == e {
			continue
		}
		for p, held := range r.holding {
			if held.id == id && e.names(held.pod) {
				now := r.w.Now()
				r.add(p, input{id: id, deed: swept, pod: held.pod}, now, now)
			}
		}
	}
}

// entry is a holder as the map names it, with its short UID.
type entry struct{ name, uid string }

func (e entry) names(pod string) bool {
	name, uid, _ := strings.Cut(pod, "/")
	return e.name == name && e.uid == assignment.ShortUID(uid)
}

// entries returns what the owner's map says, and whether it is clean.
func entries(v *server.Version) (map[int]entry, bool) {
	out := map[int]entry{}
	if !v.Exists() {
		return out, false
	}
	record := world.Read(v, time.Now().Add(24*time.Hour)) // whatever the epoch
	for id, name := range record.State.Slots {
		out[id] = entry{name: name, uid: record.State.UIDs[id]}
	}
	return out, record.Sealed && len(record.Problems) == 0 && v.Manages(assignment.FieldManager, assignment.SealKey)
}

// fit reports when the operations on ids or partitions fit no order.
func (j *Judge) fit(what string, operations []porcupine.Operation) {
	switch verdict(operations) {
	case porcupine.Ok:
	case porcupine.Unknown:
		j.reportf(linear, "not decided after %d steps: %d operations of kind %s", linearSteps, len(operations), what)
	case porcupine.Illegal:
		for _, part := range byID(operations) {
			if verdict(part) != porcupine.Ok {
				j.reportf(linear, "%s %d: no order fits: %s", what, idOf(part[0]), tellOperations(shortest(part)))
			}
		}
	}
}

// shortest returns the operations up to the first moment at which they do not fit.
func shortest(part []porcupine.Operation) []porcupine.Operation {
	moments := make([]int64, 0, 2*len(part))
	for _, o := range part {
		moments = append(moments, o.Call, o.Return)
	}
	slices.Sort(moments)
	for _, moment := range slices.Compact(moments) {
		var until []porcupine.Operation
		for _, o := range part {
			if i, _ := o.Input.(input); o.Call > moment || (o.Return > moment && i.deed == claimed) {
				continue // a claim that is under way may happen later
			}
			if o.Return > moment {
				o.Return = never
			}
			until = append(until, o)
		}
		if verdict(until) != porcupine.Ok {
			return until
		}
	}
	return part
}

// tellOperations lists the last operations, by their beginning.
func tellOperations(part []porcupine.Operation) string {
	const most = 6
	part = slices.Clone(part)
	slices.SortStableFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(min(a.Return, never-1), min(b.Return, never-1)) })
	part = part[max(0, len(part)-most):]
	out := make([]string, 0, most)
	for _, o := range part {
		until := "?"
		if o.Return != never {
			until = time.Duration(o.Return).Round(time.Millisecond).String()
		}
		i, _ := o.Input.(input)
		out = append(out, fmt.Sprintf("%s [%s, %s]", i, time.Duration(o.Call).Round(time.Millisecond), until))
	}
	return strings.Join(out, "; ")
}
