package inspect

import (
	"fmt"
	"time"
)

// idleRequests finds requests that no pod can meet any more.
func idleRequests(f *facts) (found []about) {
	for id, name := range f.state.Handover {
		if why := f.idleRequest(id, name); why != "" {
			found = append(found, on(id, name, words{"why": why}))
		}
	}
	return found
}

// idleRequest says why a request cannot be met, empty if it can.
func (f *facts) idleRequest(id int, name string) string {
	p, exists := f.pods[name]
	held, holds := f.state.Slots.Of(name)
	switch {
	case id >= f.owner.Count:
		return fmt.Sprintf("the count is %d", f.owner.Count)
	case !exists || !p.live() || p.Terminating:
		return "the pod is dead or Terminating"
	case holds:
		return fmt.Sprintf("the pod has id %d", held)
	}
	return ""
}

// notStopped finds pods that do not give what they are asked for. A Terminating pod is Kubernetes' to stop, and lost after that.
func notStopped(f *facts) (found []about) {
	since, known := f.unchanged()
	for id, name := range f.state.Handover {
		holder, locks := f.holder(id)
		if f.idleRequest(id, name) == "" && locks && known && since >= stopsWithin && !f.pods[holder].Terminating {
			found = append(found, on(id, holder, words{theTime: short(since), theOther: name}))
		}
	}
	return found
}

// notMoved finds pods with an id at or above the count that do not move. A condemned pod keeps its id until Kubernetes removes it.
func notMoved(f *facts) (found []about) {
	since := f.settled()
	for id, lockers := range f.lockers {
		for _, p := range lockers {
			if id >= f.owner.Count && !p.Condemned && since >= stopsWithin && !p.Terminating {
				found = append(found, on(id, p.Name, words{theTime: short(since)}))
			}
		}
	}
	return found
}

// at returns what can be said of a partition of a pod that works on partitions or did so. ok is false if there is none, or two pods lock it.
func (f *facts) at(k int) (s share, ok bool) {
	s = f.division.at(k)
	return s, s.id != noID && f.division.second[k] == "" && f.state.Row != nil && (f.pods[s.pod].divides() || f.pods[s.pod].abstains())
}

// stopping reports whether the row gives the partition to the pod that locks it, and the target does not.
func (f *facts) stopping(k int) bool {
	s, ok := f.at(k)
	return ok && s.state == Stopping && f.owns(s.pod, k)
}

func partitionsNotStopped(f *facts) []about {
	since := f.settled()
	return f.byPod(words{theTime: short(since)}, func(k int) string {
		if s, _ := f.at(k); f.stopping(k) && since >= stopsWithin && !f.pods[s.pod].Terminating {
			return s.pod
		}
		return ""
	})
}

// partitionsNotTaken finds partitions without work although the pod of their id lives. Both annotations have said so since they were written.
func partitionsNotTaken(f *facts) []about {
	found := f.byPod(nil, func(k int) string {
		s, ok := f.at(k)
		p := f.pods[s.pod]
		known := f.works && !f.written.IsZero() && !p.written.IsZero() && (!p.Receipt.Strict || !f.leaseCounts())
		if !ok || !known || f.stopping(k) || f.division.locker[k] != "" || f.untouched(p) < settlesWithin {
			return ""
		}
		return s.pod
	})
	for k, a := range found {
		found[k].with = words{theTime: short(f.untouched(f.pods[a.pod]))}
	}
	return found
}

// untouched returns for how long idalloc has written neither the owner nor the pod.
func (f *facts) untouched(p pod) time.Duration {
	return min(f.now.Sub(f.written), f.now.Sub(p.written))
}
