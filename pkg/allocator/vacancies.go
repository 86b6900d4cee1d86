package allocator

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// vacancies knows since when ids that own partitions have been without a holder, by what this process has seen itself.
type vacancies struct {
	since map[int]time.Time
	// dead is the pod that was followed and is gone, by the id that the map gives to it.
	dead map[int]string
}

// see takes in a moment of the owner.
func (v *vacancies) see(owner store.Owner, now time.Time) {
	row := owner.Record.State.Partitions
	if row == nil || !owner.PartitionsClean() {
		v.since, v.dead = nil, nil
		return
	}
	since, dead := map[int]time.Time{}, map[int]string{}
	for id := range row.Owners {
		pod, taken := owner.Record.State.Slots[id]
		if taken && v.dead[id] != pod+"/"+owner.Record.State.UIDs[id] {
			continue
		}
		if taken {
			dead[id] = v.dead[id]
		}
		if since[id] = now; !v.since[id].IsZero() {
			since[id] = v.since[id]
		}
	}
	v.since, v.dead = since, dead
}

// gone notes that the pod to which the map gives the id is gone.
func (v *vacancies) gone(id int, pod, uid string, now time.Time) {
	if v.dead == nil {
		v.since, v.dead = map[int]time.Time{}, map[int]string{}
	}
	v.dead[id] = pod + "/" + uid
	if v.since[id].IsZero() {
		v.since[id] = now
	}
}

// back notes that the pod to which the map gives the id is there. A list that the API server's cache answers may lack a new pod, and a pod that was
// lost may be heard of again.
func (v *vacancies) back(id int, pod, uid string) {
	if v.dead[id] == pod+"/"+uid {
		delete(v.dead, id)
		delete(v.since, id)
	}
}

// over returns the ids that have been without a holder for at least this long, and how long it is until the next one has. left is
// negative if there is none. A negative time never ends.
func (v *vacancies) over(after time.Duration, now time.Time) (over map[int]bool, left time.Duration) {
	over, left = map[int]bool{}, -1
	if after < 0 {
		return over, left
	}
	for id, since := range v.since {
		switch in := after - now.Sub(since); {
		case in <= 0:
			over[id] = true
		case left < 0 || in < left:
			left = in
		}
	}
	return over, left
}
