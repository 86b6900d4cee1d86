package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Decider makes a decision for each moment. Its zero value, with Settings, is ready to use. It is not safe for concurrent use.
type Decider struct {
	Settings Settings

	// looked is the previous moment, zero if there was none.
	looked time.Time
	// known: count is the number of pods at the previous moment.
	known bool
	count int
	// asked is the number of pods that the caller set, or 0 if another program has changed it since. undone describes that change.
	asked  int
	undone *Undone
	// wish is the published number of pods, towards which another program scales in its own steps. It becomes 0 when that number is reached, or something else
	// is decided.
	wish int
	// The times at which the number of pods last changed, the last target was written, and asked was undone. Zero if unknown.
	scaled, assigned, undoneAt time.Time
	// The times since when a condition has been true without a break, zero while it is false.
	moving, joining, short time.Time
	// enough is how long fewer pods were seen to be enough. judged is the previous moment if that was judged then; judging is this moment.
	enough          time.Duration
	judged, judging time.Time
	better          proof
	// ids holds all ids below the number of pods.
	ids map[int]*attendance
}

// Decide returns what to do at this moment. If the caller does not do it, or fails, the next call starts from what is there then.
func (d *Decider) Decide(s Seen, now time.Time) Decision {
	if !d.looked.IsZero() && now.Sub(d.looked) > 2*d.Settings.MaxAge {
		d.forget()
	}
	d.looked = now
	d.judged, d.judging = d.judging, time.Time{}
	d.notice(s, now)
	w := d.decide(s, now)
	if w.Wanted == s.Count {
		d.wish = 0
	}
	return d.remark(unworked(s, w), now)
}

// unworked adds to a decision what no pod works on.
func unworked(s Seen, w Decision) Decision {
	if n := len(s.Loads.Beyond); n > 0 {
		which := s.Loads.Beyond[0]
		if n > 1 {
			which += fmt.Sprintf(" and %d more", n-1)
		}
		w.Why += fmt.Sprintf("; no pod works on %s, for which there is no partition: raise idalloc.dev/partition-count above the highest number, and name each in --topics-file if there is one", which)
		w.Warn = true
	}
	return w
}

// forget resets the Decider after a time in which no process looked, because what was true in that time is unknown. It keeps the number of pods and the times
// of its changes, because these are facts.
func (d *Decider) forget() {
	*d = Decider{Settings: d.Settings, known: d.known, count: d.count, asked: d.asked, undone: d.undone, scaled: d.scaled, undoneAt: d.undoneAt}
}

// Missed tells the Decider that the workload could not be read at this moment.
func (d *Decider) Missed() { d.judging = time.Time{} }

func (d *Decider) decide(s Seen, now time.Time) Decision {
	switch {
	case s.Trouble != "":
		return blind(s, "%s", s.Trouble)
	case s.Count == 0:
		return blind(s, "the workload is scaled to zero: it stays so until you scale it up")
	case s.Partitions == 0:
		return blind(s, "the workload has no partitions yet")
	}
	there := d.attend(s, now)
	if held := d.underway(s, now); held != nil {
		return *held
	}
	if held := d.unmeasured(s, now); held != nil {
		return *held
	}
	return d.judge(s, there, now)
}

// Published tells the Decider that the caller has published the number of pods for another program, which scales to it. That program may take several steps,
// each of which changes what the Decider sees. So the number stands until it is reached, and steps towards it start no wait.
func (d *Decider) Published(w Decision) { d.wish = w.Wanted }

// wanted returns the number of pods to ask for while nothing new is decided about it. It is higher than the wish if higher ids own partitions.
func (d *Decider) wanted(s Seen) int {
	if d.wish > 0 {
		return max(d.wish, min(used(s.Row), s.Count))
	}
	return s.Count
}

// Wrote tells the Decider that the caller has carried out a decision. A target that could not be written starts no wait.
func (d *Decider) Wrote(w Decision, now time.Time) {
	switch w.Action {
	case Assign:
		d.assigned = now
	case Scale:
		d.changed(w.Wanted, now)
		d.asked = w.Wanted
	case Nothing:
	}
}

// notice records when any program changed the number of pods, and whether another program changed what the caller had set. The time of a change before the
// first moment comes from the object.
func (d *Decider) notice(s Seen, now time.Time) {
	if s.Trouble != "" {
		return
	}
	if !d.known && s.Scaled.Before(now) {
		d.scaled = s.Scaled
	} else if !d.known {
		d.scaled = now // the clocks differ
	}
	d.changed(s.Count, now)
	if d.asked > 0 && s.Ours {
		d.asked = s.Count // the answer to a write was lost, or another autoscaler wrote
	}
	if d.asked > 0 && s.Count != d.asked {
		d.undone, d.undoneAt = &Undone{From: d.asked, To: s.Count, By: s.Scaler}, now
		d.asked = 0
	}
}

func (d *Decider) changed(count int, now time.Time) {
	if d.known && count != d.count {
		d.scaled = now
		if up, down := d.count < count && count < d.wish, d.wish < count && count < d.count; !up && !down {
			d.wish = 0 // it is reached, or the other program does something else
		}
	}
	d.known, d.count = true, count
}

// remark adds to a decision that another program changes the number of pods, while scaling may still wait because of that.
func (d *Decider) remark(w Decision, now time.Time) Decision {
	if d.undone == nil || now.Sub(d.undoneAt) >= max(d.Settings.AfterUp, d.Settings.AfterDown) {
		return w
	}
	w.Why += "; " + d.undone.String()
	w.Warn = true
	if now.Equal(d.undoneAt) {
		w.Undone = d.undone
	}
	return w
}

func blind(s Seen, format string, args ...any) Decision {
	return Decision{Phase: Blind, Action: Nothing, Wanted: s.Count, Why: fmt.Sprintf(format, args...)}
}

// since stores in at the time since when a condition has been true, and returns how long that is.
func since(at *time.Time, is bool, now time.Time) time.Duration {
	switch {
	case !is:
		*at = time.Time{}
		return 0
	case at.IsZero():
		*at = now
	}
	return now.Sub(*at)
}

// fewer returns how long fewer pods were seen to be enough. Time does not count while partitions move, pods begin, or no process looks, because then
// nothing judges it. One moment counts for at most --max-age, as loads do.
func (d *Decider) fewer(enough bool, now time.Time) time.Duration {
	if !enough {
		d.enough = 0
		return 0
	}
	if !d.judged.IsZero() {
		d.enough += min(now.Sub(d.judged), d.Settings.MaxAge)
	}
	d.judging = now
	return d.enough
}

// members returns the ids that may own partitions.
func (s Seen) members() []int {
	return slices.DeleteFunc(s.Row.IDs(), func(id int) bool { return id >= s.Count })
}

// underway returns a decision to wait while a partition is not where the pods should bring it.
func (d *Decider) underway(s Seen, now time.Time) *Decision {
	members := s.members()
	aim := placement.External(placement.Input{Partitions: s.Partitions, Count: s.Count, Members: members, Owners: s.Row, Target: s.Target})
	moves := len(members) == 0 || !aim.Equal(s.Row)
	took := since(&d.moving, moves, now)
	if !moves {
		return nil
	}
	if s.Foreign != "" && len(members) > 0 {
		return d.restore(s, members, now)
	}
	w := Decision{Phase: Moving, Action: Nothing, Wanted: d.wanted(s), Stuck: took > d.Settings.Patience}
	w.Warn = w.Stuck
	w.Why = fmt.Sprintf("a move has been under way for %s: %s", seconds(took), late(s.Row, aim))
	if w.Stuck {
		w.Why += "; nothing else is decided before it is done: look at idalloc get --partitions for what the pod is doing"
	}
	return &w
}

// restore returns a decision to end a move to a target that is not the autoscaler's, for example after kubectl rollout undo, which brings back the annotations
// of a former revision. Partitions that have moved stay where they are. Then the loads decide again.
func (d *Decider) restore(s Seen, members []int, now time.Time) *Decision {
	w := Decision{Phase: Acting, Action: Assign, Reason: Restore, Wanted: d.wanted(s), Target: placement.Owners{}}
	for _, id := range members {
		w.Target[id] = s.Row[id]
	}
	w.Why = "the target was changed by " + s.Foreign + ": partitions stay where they are, and the loads decide again"
	if wait := d.sinceTarget(now); wait > 0 {
		w = waiting(s, w, wait)
	}
	return &w
}

// late describes the partitions that are not where they should be.
func late(row, aim placement.Owners) string {
	var parts []string
	more := 0
	for _, id := range aim.IDs() {
		missing := aim[id].Minus(row[id])
		if missing.Empty() {
			continue
		}
		if len(parts) == 3 {
			more++
			continue
		}
		parts = append(parts, fmt.Sprintf("id %d waits for %s%s", id, named(missing), holders(row, missing)))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more ids wait", more))
	}
	if len(parts) == 0 {
		return "no id is a member yet"
	}
	return strings.Join(parts, ", ")
}

// holders describes which ids own some of the partitions.
func holders(row placement.Owners, set placement.Set) string {
	var ids []string
	for _, id := range row.IDs() {
		if !row[id].Intersect(set).Empty() {
			ids = append(ids, strconv.Itoa(id))
		}
	}
	if len(ids) == 0 {
		return ", which no id owns"
	}
	return " of id " + short(strings.Join(ids, ","))
}

// named returns the partitions with the word "partition" or "partitions" before them.
func named(set placement.Set) string {
	if set.Len() == 1 {
		return "partition " + set.String()
	}
	return "partitions " + short(set.String())
}

func short(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// unmeasured returns a decision to wait while the loads cannot be judged.
func (d *Decider) unmeasured(s Seen, now time.Time) *Decision {
	var w Decision
	switch {
	case len(s.Loads.Speeds) != s.Partitions:
		w = blind(s, "loads are known of %d partitions, and there are %d", len(s.Loads.Speeds), s.Partitions)
	case !s.Loads.Missing.Empty():
		w = blind(s, "no load is known of %s: %s", named(s.Loads.Missing), cmp.Or(s.Loads.Why, "the source says nothing about that, or not for long enough"))
	case now.Sub(s.Loads.At) > d.Settings.MaxAge:
		w = blind(s, "%s, longer than --max-age %s", silence(s, now), seconds(d.Settings.MaxAge))
		if s.Loads.Why != "" && !s.Loads.Silent.Empty() {
			w.Why += ": " + s.Loads.Why
		}
		w.Warn = true
	default:
		return nil
	}
	d.enough = 0 // it is not known whether fewer would do
	w.Wanted = d.wanted(s)
	return &w
}

// silence describes which partitions were not measured, and for how long.
func silence(s Seen, now time.Time) string {
	old := seconds(now.Sub(s.Loads.At))
	if s.Loads.Silent.Empty() {
		return fmt.Sprintf("the source has given no usable reading for %s", old)
	}
	if s.Loads.Silent.Len() == 1 {
		return fmt.Sprintf("the source says nothing of %s any more, for %s", named(s.Loads.Silent), old)
	}
	return fmt.Sprintf("the source says nothing of %s any more, and of one of them for %s", named(s.Loads.Silent), old)
}

// seconds rounds a duration to seconds.
func seconds(t time.Duration) time.Duration { return t.Round(time.Second) }
