package decide

import (
	"fmt"
	"time"
)

// attendance is what is known about an id below the number of pods.
type attendance struct {
	// joined is true if it counted at some time.
	joined bool
	// gone is the time since when it has not counted, zero while it counts. back is the time since when it has been there again.
	gone, back time.Time
}

// attend returns the ids that count, in ascending order: members whose pod can work. The row alone does not show that: it keeps an id until the id's failover
// is over. A lost id below a working one is replaced by one more pod; lost ids above all working ones mean that there is no room. A lost id counts again only
// after it has been there for a while, because a pod that keeps crashing is there only for moments. A new id counts at once. At the first moment, new and lost
// ids look the same. So an id that is missing then is treated as lost, and the first target waits to see which ids stay.
func (d *Decider) attend(s Seen, now time.Time) []int {
	first := d.ids == nil
	if first {
		d.ids, d.assigned = map[int]*attendance{}, now
	}
	for id := range d.ids {
		if id >= s.Count {
			delete(d.ids, id)
		}
	}
	var there []int
	for id := range s.Count {
		a := d.ids[id]
		if a == nil {
			a = &attendance{joined: first}
			d.ids[id] = a
		}
		_, member := s.Row[id]
		a.note(member && s.Absent[id] == "", d.Settings.Every, now)
		if a.gone.IsZero() {
			there = append(there, id)
		}
	}
	return there
}

func (a *attendance) note(there bool, settled time.Duration, now time.Time) {
	switch {
	case !there:
		a.back = time.Time{}
		if a.gone.IsZero() {
			a.gone = now
		}
	case !a.joined:
		a.joined, a.gone = true, time.Time{}
	case !a.gone.IsZero():
		if since(&a.back, true, now) >= settled {
			a.gone, a.back = time.Time{}, time.Time{}
		}
	}
}

// missing explains which ids do not count, and why. It is empty if all do.
func (d *Decider) missing(s Seen, now time.Time) string {
	const most = 3
	var lost []int
	for id := range s.Count {
		if !d.ids[id].gone.IsZero() {
			lost = append(lost, id)
		}
	}
	text := ""
	for _, id := range lost[:min(len(lost), most)] {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("id %d of %d has not taken part for %s: %s", id, s.Count, seconds(now.Sub(d.ids[id].gone)), d.why(s, id))
	}
	if len(lost) > most {
		text += fmt.Sprintf(", and %d more", len(lost)-most)
	}
	return text
}

// why explains why an id does not count.
func (d *Decider) why(s Seen, id int) string {
	_, member := s.Row[id]
	switch {
	case s.Absent[id] != "":
		return s.Absent[id]
	case !member:
		return "its pod has not begun to work on partitions"
	}
	return "its pod is back, but not for long enough"
}

// lost reports whether an id has not counted for longer than Settings.Patience.
func (d *Decider) lost(id int, now time.Time) bool {
	a := d.ids[id]
	return !a.gone.IsZero() && now.Sub(a.gone) > d.Settings.Patience
}

// holes counts the lost ids below the highest id whose pod runs. The higher ids show that new pods do come, but these ids have no working pod. So that many
// more pods are needed.
func (d *Decider) holes(s Seen, now time.Time) int {
	n, highest := 0, 0
	for id := range s.Count {
		if d.lost(id, now) {
			n++
		}
		if d.ids[id].gone.IsZero() || s.Unready[id] {
			highest = n
		}
	}
	return highest
}
