package decision

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Stage is what a pod waits for if its containers started with another count.
type Stage string

// The stages of such a pod.
const (
	StageSettling Stage = "settling" // the count has not been stable for long enough
	StageQueued   Stage = "queued"   // as many others as may already restart, or lack an available pod
	StageStarting Stage = "starting" // its containers restart, or it has not been available since
	StageEvicting Stage = "evicting" // the controller evicts it as soon as the disruption budgets permit
	StageRollout  Stage = "rollout"  // it is of an older revision, which the rolling update replaces
	StagePaused   Stage = "paused"   // the Deployment is paused
	StageNever    Stage = "never"    // the controller evicts no pods of this kind
)

// Behind is a pod whose containers started with another count, or that has just been told the present one.
type Behind struct {
	Pod     string
	Started string
	Stage   Stage
	// SettledAt is when its wait for a stable count ends or has ended.
	SettledAt time.Time
}

// turn is a pod's present start count and, in Turn, its start count, watcher and program when its turn began. Turn is empty if the pod has no turn, or was not
// available when the start count changed.
type turn struct{ StartCount, Turn string }

// turns decides which pods that restart with the count get the present one now. Pods that are not available get it at once, because their restart costs
// nothing.
func (v *view) turns() {
	v.told = map[string]turn{}
	var waiting []*pod
	used := 0
	for _, p := range v.pods {
		if !v.turnsWith(p, assignment.OnCountRestart) {
			continue
		}
		if v.restarts(p) {
			used++
		} else if p.Turn != "" {
			v.told[p.Name] = turn{p.StartCount, ""}
		}
		if p.StartCount != v.present() {
			waiting = append(waiting, p)
		} else if v.restarts(p) {
			v.behind(p, StageStarting)
		}
	}
	for _, p := range v.byWait(waiting) {
		next := turn{v.present(), strings.TrimSpace(p.StartCount + " " + p.Watcher + " " + p.Program)}
		switch {
		case v.unsettled(p):
			v.behind(p, StageSettling)
			continue
		case v.restarts(p) && !p.restarted():
			next.Turn = p.Turn
		case v.restarts(p):
		case !v.available(p):
			next.Turn = ""
		case used < v.w.Owner.Turns:
			used++
		default:
			v.behind(p, StageQueued)
			continue
		}
		v.told[p.Name] = next
		v.behind(p, StageStarting)
	}
}

// byWait sorts pods by how long they have waited for the present count or an earlier one, the longest wait first, and then by id.
func (v *view) byWait(pods []*pod) []*pod {
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(a.SettledAt.Compare(b.SettledAt), a.id-b.id, cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// settledAt returns when the pod's wait for a stable count ends.
func (v *view) settledAt(p *pod) time.Time {
	if p.SettledAt.IsZero() || v.w.SettledAt.Before(p.SettledAt) {
		return v.w.SettledAt
	}
	return p.SettledAt
}

// present returns the present count in the form of a start count.
func (v *view) present() string { return strconv.Itoa(v.w.Owner.Count) }

// unsettled reports whether the count has not been stable for long enough for the pod. It records when to decide again.
func (v *view) unsettled(p *pod) bool {
	at := v.settledAt(p)
	if !at.After(v.w.Now) {
		return false
	}
	if v.turnAt.IsZero() || at.Before(v.turnAt) {
		v.turnAt = at
	}
	return true
}

// turnsWith reports whether the pod runs and changes its start count in this way. A pod with an id above the count keeps its start count until Kubernetes
// removes it.
func (v *view) turnsWith(p *pod, way string) bool {
	return p.begun && !p.Terminating && !p.anothers() && p.id < v.w.Owner.Count && p.OnCount == way && v.holdsStart(p)
}

// holdsStart reports whether the pod keeps its start count when the count changes. A pod that should restart but has no watcher does not keep it.
func (v *view) holdsStart(p *pod) bool {
	if _, err := strconv.Atoi(p.StartCount); err != nil || !p.begun {
		return false
	}
	return p.OnCount == assignment.OnCountReplace || p.OnCount == assignment.OnCountRestart && (p.Watcher != "" || !v.available(p))
}

// startCount returns the count with which the pod's containers start from now on, and its turn.
func (v *view) startCount(p *pod, count string) turn {
	told, has := v.told[p.Name]
	switch {
	case !v.holdsStart(p):
		return turn{count, ""}
	case has:
		return told
	}
	return turn{p.StartCount, p.Turn}
}

// restarted reports whether all containers of the pod have restarted since its turn began. If the watcher or the program alone ended, the others still have the
// former count.
func (p *pod) restarted() bool {
	_, containers, _ := strings.Cut(p.Turn, " ")
	watcher, program, _ := strings.Cut(containers, " ")
	return p.Watcher != "" && p.Watcher != watcher && (program == "" || p.Program != program)
}

// restarts reports whether the pod's turn is in progress. It ends when the pod is available and its containers have restarted, or need no restart.
func (v *view) restarts(p *pod) bool {
	count, _, _ := strings.Cut(p.Turn, " ")
	over := v.available(p) && p.Watcher != "" && (p.restarted() || count == p.StartCount)
	return p.Turn != "" && !over
}

func (v *view) behind(p *pod, at Stage) {
	v.d.Behind = append(v.d.Behind, Behind{Pod: p.Name, Started: p.StartCount, Stage: at, SettledAt: v.settledAt(p)})
}

// replace evicts pods that started with another count. It evicts pods that are not available at once. It evicts the others while few enough ids lack an
// available pod. In the presence of a lost pod it leaves one pod available.
func (v *view) replace() {
	o, c := v.w.Owner, v.census()
	for _, r := range v.d.Remove {
		if p := v.named[r.Pod]; v.available(p) {
			c.without++
			c.available--
		}
	}
	room := o.Turns - c.without
	var working []*pod
	for _, p := range c.holders {
		if !v.turnsWith(p, assignment.OnCountReplace) || p.StartCount == v.present() {
			continue
		}
		stage := StageEvicting
		switch {
		case !o.Evicts:
			stage = StageNever
		case o.Paused:
			stage = StagePaused
		case !p.Owned || !v.current(p) || p.Older:
			stage = StageRollout
		case v.unsettled(p):
			stage = StageSettling
		case v.available(p):
			working = append(working, p)
			continue
		default:
			v.evict(p)
			room++ // its id lacks an available pod anyway
		}
		v.behind(p, stage)
	}
	if c.lost > 0 && o.Count > 1 {
		room = min(room, c.available-1)
	}
	for _, p := range v.byWait(working) {
		if room <= 0 {
			v.behind(p, StageQueued)
			continue
		}
		room--
		v.evict(p)
		v.behind(p, StageEvicting)
	}
}

// evict evicts a pod that started with another count, unless it is already being removed.
func (v *view) evict(p *pod) {
	if !v.doubled(p) && !slices.ContainsFunc(v.d.Remove, func(r Removal) bool { return r.Pod == p.Name }) {
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseCount, Evict: true})
	}
}
