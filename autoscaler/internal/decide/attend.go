package decide

import (
	"fmt"
	"time"
)

// attendance is what is known of an id below the number of pods.
type attendance struct {
	// joined says that it took part at some time.
	joined bool
	// gone is since when it has not counted, zero while it counts. back is since when it has been there again.
	gone, back time.Time
}

// attend returns the ids that count, in ascending order: members with a pod that can work. The row alone does not tell: it has an id for as long as
// its failover takes. An id that is lost below one that works is made up for by one more pod; those above all that work are a lack of room. An id
// that was lost counts again when it has been there for a while, because a pod that crashes again and again is there for moments only. A new one
// counts at once. Which ones are new is not known at the first moment. So what is missing then was lost, and the first target waits to see who stays.
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

// missing says which ids do not count, and why. It is empty if all do.
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

// why says why an id does not count.
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

// lost reports whether an id has not counted for longer than the patience.
func (d *Decider) lost(id int, now time.Time) bool {
	a := d.ids[id]
	return !a.gone.IsZero() && now.Sub(a.gone) > d.Settings.Patience
}

// holes returns how many ids up to the highest whose pod runs are lost. Pods come, as the higher ids show, and these have none that works.
// So as many more pods are needed.
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
