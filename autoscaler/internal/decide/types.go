package decide

import (
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Settings are the user's choices. All times are positive.
type Settings struct {
	// Capacity is what one pod works off, in units per second. Margin is the part of it that stays free for each partition of the pod.
	Capacity, Margin float64
	// Min and Max limit the number of pods. Max 0 means no limit.
	Min, Max int
	// Every is the minimum time between two targets.
	Every time.Duration
	// AfterUp and AfterDown are how long scaling up and scaling down wait after the last scaling in either direction. Before pods go, fewer pods must also have
	// been enough for AfterDown. Only time in which that was judged counts, without moves and breaks.
	AfterUp, AfterDown time.Duration
	// MaxAge is the age at which data is too old for a decision.
	MaxAge time.Duration
	// Patience is how long decisions wait for ids that do not count, and for others to change the number of pods, before the partitions are divided among the
	// existing ids. A move that takes longer counts as stuck.
	Patience time.Duration
	// Spare is the share of Capacity that stays free when pods go.
	Spare float64
}

// gain is the minimum improvement of the fullest pod, as a share of a pod's capacity, for partitions to move when there is no room for all.
const gain = 0.05

// Loads describes how fast partitions grow.
type Loads struct {
	// Speeds is the speed of each partition in units per second, without those in Missing. Comes is the part of it that does not come from waiting work; if
	// nil, all of it.
	Speeds, Comes []float64
	// Missing are the partitions about which nothing is known.
	Missing placement.Set
	// Silent are the other partitions that the latest reading lacks. Their values are older than that reading.
	Silent placement.Set
	// Why explains why the first of Missing, or else of Silent, was not measured. It may be empty.
	Why string
	// Beyond names the parts of the source that match no partition of the workload.
	Beyond []string
	// At is the time at which the oldest of the latest values was measured.
	At time.Time
}

func (l Loads) comes() []float64 {
	if l.Comes == nil {
		return l.Speeds
	}
	return l.Comes
}

// Seen is one moment of the workload.
type Seen struct {
	// Trouble explains why the owner must not be changed. It is empty if it may be.
	Trouble string
	// Count is the number of pods that the owner asks for.
	Count int
	// Partitions is the number of partitions in force. Row is who owns them, Target is the target's annotation.
	Partitions  int
	Row, Target placement.Owners
	// Foreign names another writer of the target in force. It is empty if an autoscaler wrote it.
	Foreign string
	// Scaler is the field manager that last set the number of pods, empty if unknown.
	Scaler string
	// Scaled is the latest time at which that can have been, zero if unknown.
	Scaled time.Time
	// Ours is true if an autoscaler set it last.
	Ours bool
	// Absent explains, by id, why an id has no pod that can work. An id that is neither a member nor in Absent has not joined yet.
	Absent map[int]string
	// Unready are those of Absent whose pods run but are not Ready. Too much load may be the cause.
	Unready map[int]bool
	Loads   Loads
}

// Phase is what the autoscaler is doing.
type Phase string

// Phases.
const (
	// Blind: the owner or the loads cannot be judged, so nothing is decided.
	Blind Phase = "blind"
	// Idle: every partition is where it should be, and the pods are as many as the load asks for.
	Idle Phase = "idle"
	// Waiting: there is something to do, but it is too early.
	Waiting Phase = "waiting"
	// Moving: pods should become members, or partitions are moving.
	Moving Phase = "moving"
	// Acting: this decision has something to write.
	Acting Phase = "acting"
)

// Phases returns all phases.
func Phases() []Phase { return []Phase{Blind, Idle, Waiting, Moving, Acting} }

// Action is what the caller should write.
type Action string

// Actions.
const (
	// Nothing: write nothing.
	Nothing Action = "nothing"
	// Assign writes Decision.Target.
	Assign Action = "assign"
	// Scale sets the number of pods to Decision.Wanted.
	Scale Action = "scale"
)

// Reason names the cause of an action, for metrics and Events.
type Reason string

// Reasons.
const (
	Overload Reason = "Overload" // a pod has more load than it works off
	Fewer    Reason = "Fewer"    // fewer pods are enough
	Bounds   Reason = "Bounds"   // the number of pods is outside its bounds
	Balance  Reason = "Balance"  // there cannot be more pods, but the load can be spread better
	Empty    Reason = "Empty"    // the highest ids own nothing
	Restore  Reason = "Restore"  // another program has changed the target
)

// Decision is what to do, and why.
type Decision struct {
	Phase  Phase
	Action Action
	Reason Reason // empty if there is nothing to do
	// Why is a sentence with the numbers behind the decision.
	Why string
	// Wanted is the number of pods that there should be now. It is Seen.Count if nothing should change.
	Wanted int
	// Target is what Assign writes.
	Target placement.Owners
	// Warn: a person should look.
	Warn bool
	// Moved is the load that Target moves, in units per second.
	Moved float64
	// Oversized are partitions that grow faster than a pod works off.
	Oversized []int
	// Stuck: the current move takes longer than Settings.Patience.
	Stuck bool
	// Undone is a change that was noticed at this moment, or nil.
	Undone *Undone
}

// Undone describes how another program changed the number of pods that the autoscaler had set.
type Undone struct {
	From, To int
	// By is the field manager of that program, empty if unknown.
	By string
}

// String returns a sentence that also explains what to do.
func (u Undone) String() string {
	who := "another client"
	if u.By != "" {
		who = fmt.Sprintf("field manager %q", u.By)
	}
	return fmt.Sprintf("%s changed the number of pods from %d, which the autoscaler had set, to %d: take replicas out of what it applies, as docs/autoscaling.md says, because without the line alone the next apply sets 1; "+
		"or run the autoscaler with --scale=false",
		who, u.From, u.To)
}
