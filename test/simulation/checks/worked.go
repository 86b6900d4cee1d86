package checks

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// workRecorder notes the begins and ends of work on partitions, with its tokens. The model is that of an id: at most one process works on
// a partition, each next pod has a higher token, and no write takes a partition from the id of a process that works on it.
type workRecorder struct {
	judge      *Judge
	operations []porcupine.Operation
	clients    map[*world.Process]int
	// working is what each process works on, and since says since when it has not.
	working map[*world.Process]map[int]input
	since   map[*world.Process]map[int]time.Duration
	// known says since when each process has been known.
	known map[*world.Process]time.Duration
	// leaving are the ends of work by partition that nobody's begin has followed yet.
	leaving map[int][]int
}

func newWorkRecorder(j *Judge) *workRecorder {
	return &workRecorder{
		judge: j, clients: map[*world.Process]int{}, working: map[*world.Process]map[int]input{}, since: map[*world.Process]map[int]time.Duration{},
		known: map[*world.Process]time.Duration{}, leaving: map[int][]int{},
	}
}

// look notes what a process works on at this moment.
func (r *workRecorder) look(p *world.Process) {
	if !p.Divides() {
		return
	}
	if _, known := r.known[p]; !known {
		r.known[p], r.working[p], r.since[p] = r.judge.w.Now(), map[int]input{}, map[int]time.Duration{}
	}
	now := p.Working()
	if r.judge.isGhost(p) {
		now = nil
	}
	for k, i := range r.working[p] {
		if token, works := now[k]; !works || token != i.token {
			r.ended(p, i)
		}
	}
	for k, token := range now {
		if _, works := r.working[p][k]; !works {
			r.began(p, k, token)
		}
	}
}

// handOn has next work on what its pod's process before it worked on.
func (r *workRecorder) handOn(before, next *world.Process) {
	if _, known := r.known[before]; !known {
		return
	}
	r.known[next], r.working[next], r.since[next] = r.known[before], r.working[before], r.since[before]
	delete(r.known, before)
	delete(r.working, before)
	delete(r.since, before)
}

func (r *workRecorder) began(p *world.Process, k int, token int64) {
	least, forgotten := r.judge.parts.forgotten[k]
	i := input{
		id: k, deed: claimed, process: p.ID + "/" + p.UID, pod: world.PodKey(p.Pod, p.UID), token: token, unordered: forgotten && token >= least,
	}
	since, ended := r.since[p][k]
	if !ended {
		since = r.known[p]
	}
	r.add(p, i, since, int64(r.judge.w.Now()))
	r.working[p][k] = i
	for _, n := range r.leaving[k] { // a partition on which work begins was free
		r.operations[n].Return = int64(r.judge.w.Now())
	}
	delete(r.leaving, k)
}

func (r *workRecorder) ended(p *world.Process, i input) {
	if i.deed = released; p.Dead {
		i.deed = died
	}
	r.add(p, i, r.judge.w.Now(), never)
	r.leaving[i.id] = append(r.leaving[i.id], len(r.operations)-1)
	r.since[p][i.id] = r.judge.w.Now()
	delete(r.working[p], i.id)
}

func (r *workRecorder) add(p *world.Process, i input, call time.Duration, back int64) {
	client, known := r.clients[p]
	if !known {
		client = len(r.clients)
		r.clients[p] = client
	}
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: i, Call: int64(call), Return: back})
}

// stored notes the partitions that a write of idalloc on a clean map took from the ids of those who work on them. In strict mode they may
// be worked on until the quarantine is over.
func (r *workRecorder) stored(v *server.Version) {
	before, wasClean := rowOf(v.Before)
	after, clean := rowOf(v)
	if !wasClean || !clean || before.Same(after) || r.judge.w.Profile.FenceAfter > 0 {
		return
	}
	for p, works := range r.working {
		b := p.Belief()
		if b == nil {
			continue
		}
		for k, i := range works {
			if before.Owners[b.ID].Contains(k) && !after.Owners[b.ID].Contains(k) && (ownerOf(after, k) >= 0 || !r.judge.lockedAgain(p, k)) {
				r.add(p, input{id: k, deed: swept, pod: i.pod}, r.judge.w.Now(), int64(r.judge.w.Now()))
			}
		}
	}
}
