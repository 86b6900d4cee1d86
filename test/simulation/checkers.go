package simulation

import (
	"fmt"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

// violation is a promise that was broken.
type violation struct {
	At      time.Duration
	Promise string
	Detail  string
}

// String says what was broken, and when.
func (v violation) String() string {
	return fmt.Sprintf("%s at %s: %s", v.Promise, v.At.Round(time.Millisecond), v.Detail)
}

// The promises that are checked.
const (
	exclusion = "mutual exclusion"
	token     = "fencing token"
	density   = "density and progress"
	moves     = "minimal moves"
	bounded   = "bounded requests"
	crashed   = "process goes on"
	prompt    = "bounded progress"
)

// held is what the judge knows of one id's last holder.
type heldBy struct {
	p     *process
	token int64
}

// judge watches what workloads believe, and nothing else, and says when a promise is broken.
type judge struct {
	w          *world
	violations []violation
	byID       map[int]heldBy // the last holder of each id
	believed   map[*process]identity.Identity
	// idOf is the last id of each pod, by UID, and since when nothing gave it a reason to move.
	idOf map[string]int
	// excused is the last moment at which a pod may have had a reason to move.
	excused time.Duration
	told    map[string]bool
	// damaged says that somebody else may have erased the owner's epoch.
	damaged bool
	count   int
	// recorder notes what the check of linearizability looks at.
	recorder *recorder
	// ended says that processes are ended on purpose now.
	ended    bool
	progress *progress
}

func newJudge(w *world) *judge {
	return &judge{
		w: w, byID: map[int]heldBy{}, believed: map[*process]identity.Identity{}, idOf: map[string]int{}, told: map[string]bool{},
		recorder: newRecorder(w), progress: newProgress(w),
	}
}

func (j *judge) reportf(promise, format string, args ...any) {
	v := violation{At: j.w.now(), Promise: promise, Detail: fmt.Sprintf(format, args...)}
	if key := promise + v.Detail; !j.told[key] {
		j.told[key] = true
		j.violations = append(j.violations, v)
		j.w.note("VIOLATION", v.String())
	}
}

// look compares what all processes believe at this moment.
func (j *judge) look() {
	now := map[int]*process{}
	for _, p := range j.w.processes {
		b := p.belief()
		j.recorder.look(p, b)
		if b == nil {
			delete(j.believed, p)
			continue
		}
		before, had := j.believed[p]
		if !had || before.ID != b.ID || before.Epoch != b.Epoch {
			j.began(p, *b)
		}
		j.believed[p] = *b
		other := now[b.ID]
		if other == nil {
			now[b.ID] = p
			continue
		}
		if j.excusedPair(p, other) {
			continue
		}
		j.reportf(exclusion, "id %d: %s and %s", b.ID, other.id, p.id)
	}
}

// excusedPair: without strict mode a pod that was deleted by force while its process ran on is not covered.
func (j *judge) excusedPair(a, b *process) bool {
	return j.w.profile.fenceAfter == 0 && (j.w.isGhost(a) || j.w.isGhost(b))
}

// began checks the token of an id that a process begins to act under.
func (j *judge) began(p *process, b identity.Identity) {
	last, known := j.byID[b.ID]
	switch {
	case !known, j.damaged && j.w.profile.skew > 0: // what remembers the epochs may be lost, and only clocks are left
	case last.p.uid != p.uid && b.Epoch <= last.token:
		j.reportf(token, "id %d: %s has %d, its predecessor %s had %d", b.ID, p.id, b.Epoch, last.p.id, last.token)
	case last.p.uid == p.uid && b.Epoch < last.token:
		j.reportf(token, "id %d: the token of %s fell from %d to %d", b.ID, p.id, last.token, b.Epoch)
	}
	if !known || b.Epoch > last.token {
		j.byID[b.ID] = heldBy{p: p, token: b.Epoch}
	}
	if id, had := j.idOf[p.uid]; had && id != b.ID && j.w.now()-j.excused > 10*time.Minute {
		j.reportf(moves, "%s moved from id %d to %d", p.id, id, b.ID)
	}
	j.idOf[p.uid] = b.ID
}

// excuse notes that somebody did something for which pods may have to move.
func (j *judge) excuse() { j.excused = j.w.now() }

// stored is told of every write.
func (j *judge) stored(v *version) {
	if v.kind.resource != j.w.profile.resource || v.name != ownerName || v.object == nil {
		return
	}
	j.recorder.stored(v)
	if n := number(v.object, "spec", v.kind.count); n != j.count {
		j.count = n
		j.excuse()
	}
}

// settled says what is missing until the workload is as it should be; it is empty when nothing is.
func (j *judge) settled() string {
	owner := j.w.server.get(j.w.profile.resource, ownerName)
	if owner == nil {
		return "the owner does not exist"
	}
	n := number(owner.object, "spec", owner.kind.count)
	holders := map[int]string{}
	acting := 0
	for _, p := range j.w.processes {
		if b := p.belief(); b != nil {
			acting++
			holders[b.ID] = p.id
			if b.Count != n {
				return fmt.Sprintf("%s believes in count %d of %d", p.id, b.Count, n)
			}
		}
	}
	for id := range n {
		if holders[id] == "" {
			return fmt.Sprintf("nobody acts under id %d of %d (%d act, %d pods live)", id, n, acting, j.w.livePods())
		}
	}
	if acting != n {
		return fmt.Sprintf("%d act for count %d", acting, n)
	}
	if live := j.w.livePods(); live != n {
		return fmt.Sprintf("%d pods live for count %d", live, n)
	}
	return ""
}

// calls returns how many requests each process has made.
func (j *judge) calls() map[*process]int {
	out := map[*process]int{}
	for _, p := range j.w.processes {
		out[p] = p.calls
	}
	return out
}

// checkCalls compares with an earlier look: a settled workload asks little.
func (j *judge) checkCalls(before map[*process]int, in time.Duration) {
	minutes := int(in/time.Minute) + 1
	most := 12 * minutes // watches that end, and what comes after them
	if f := j.w.profile.fenceAfter; f > 0 {
		most += int(in/f+1) * 6
	}
	for p, n := range before {
		if made := p.calls - n; made > most {
			j.reportf(bounded, "%s made %s requests in %s of rest; at most %d are needed", p.id, strconv.Itoa(made), in, most)
		}
	}
}

// checkBusy bounds what a process asks in its whole life, faults and all.
func (j *judge) checkBusy() {
	j.ended = true
	const perMinute = 600
	for _, p := range j.w.processes {
		if most := perMinute * (int(j.w.now()/time.Minute) + 1); p.calls > most {
			j.reportf(bounded, "%s made %d requests in %s", p.id, p.calls, j.w.now().Round(time.Second))
		}
	}
}
