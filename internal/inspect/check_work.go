package inspect

import (
	"fmt"
	"time"
)

// idleRequests finds requests that no pod can fulfil any more.
func idleRequests(f *facts) (found []about) {
	for id, name := range f.state.Handover {
		if why := f.idleRequest(id, name); why != "" {
			found = append(found, on(id, name, words{"why": why}))
		}
	}
	return found
}

// idleRequest explains why a request cannot be fulfilled, or returns "".
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

// notStopped finds pods that do not give a requested slot. Terminating pods are left out: Kubernetes stops them, and after that they are lost.
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

// at returns the share of partition k. ok is false if two pods lock it, or if it has no id or no pod with a locked slot.
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

// partitionsNotTaken finds partitions that are not worked on although the pod of their id lives. Both annotations have been the same since they were written.
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

// untouched returns how long idalloc has written neither the owner nor the pod.
func (f *facts) untouched(p pod) time.Duration {
	return min(f.now.Sub(f.written), f.now.Sub(p.written))
}
