package decide

import (
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Settings are what a user decides. All times are positive.
type Settings struct {
	// Capacity is what one pod works off, in units per second. Margin is kept free of it for each partition that the pod has.
	Capacity, Margin float64
	// Min and Max bound the number of pods. Max 0 sets no bound.
	Min, Max int
	// Every is the shortest time between two targets.
	Every time.Duration
	// AfterUp and AfterDown are how long scaling up and scaling down wait after the last scaling, whichever way that went. For AfterDown
	// fewer pods must have been enough before any goes: time in which that was judged, without moves and without breaks.
	AfterUp, AfterDown time.Duration
	// MaxAge is the age from which data is too old to decide on.
	MaxAge time.Duration
	// Patience is how long decisions wait for ids that take no part, and for others to change the number of pods, before the partitions
	// are divided among the ids that there are. A move that takes longer counts as stuck.
	Patience time.Duration
	// Spare is the share of Capacity that stays free when pods go.
	Spare float64
}

// gain is the share of a pod's capacity by which the fullest pod must improve for partitions to move where there is no room for all.
const gain = 0.05

// Loads is how fast partitions grow.
type Loads struct {
	// Speeds is the speed of each partition in units per second, without those that are Missing. Comes is the part of it that does
	// not come of what waits; nil stands for all.
	Speeds, Comes []float64
	// Missing are the partitions of which nothing is known.
	Missing placement.Set
	// Silent are those of the others of which the latest reading said nothing. Their values are older than that.
	Silent placement.Set
	// Why is why nothing is known of the first of Missing, or else of Silent. It may be empty.
	Why string
	// Beyond names what the source has and no partition of the workload stands for.
	Beyond []string
	// At is when the oldest of the latest values was measured.
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
	// Trouble says why the owner is not to be touched, empty if it may be.
	Trouble string
	// Count is the number of pods that the owner asks for.
	Count int
	// Partitions is the number in force. Row says who owns them, and Target is what the target's annotation says.
	Partitions  int
	Row, Target placement.Owners
	// Foreign says who else wrote the target in force, empty if an autoscaler did.
	Foreign string
	// Scaler is the field manager that set the number of pods last, empty if that is not known.
	Scaler string
	// Scaled is when that was at the latest, zero if that is not known.
	Scaled time.Time
	// Ours says that an autoscaler set it last.
	Ours bool
	// Absent says of ids that have no pod which can work why that is so. An id that is no member and not among them has not joined yet.
	Absent map[int]string
	// Unready are those of Absent whose pods run, and of which only the readiness says that they cannot work. Too much load may be why.
	Unready map[int]bool
	Loads   Loads
}

// Phase is what the autoscaler is about.
type Phase string

// The phases.
const (
	// Blind: the owner or the loads cannot be judged, so nothing is decided.
	Blind Phase = "blind"
	// Idle: every partition is where it should be, and the pods are as many as the load asks for.
	Idle Phase = "idle"
	// Waiting: something is to be done, and it is too early for that.
	Waiting Phase = "waiting"
	// Moving: pods are to become members, or partitions are on their way.
	Moving Phase = "moving"
	// Acting: this decision has something to write.
	Acting Phase = "acting"
)

// Phases returns all phases.
func Phases() []Phase { return []Phase{Blind, Idle, Waiting, Moving, Acting} }

// Action is what is to be written.
type Action string

// The actions.
const (
	// Nothing is to be written.
	Nothing Action = "nothing"
	// Assign writes Decision.Target.
	Assign Action = "assign"
	// Scale sets the number of pods to Decision.Wanted.
	Scale Action = "scale"
)

// Reason is a word for the cause of an action, for metrics and Events.
type Reason string

// The reasons.
const (
	Overload Reason = "Overload" // a pod has more than it works off
	Fewer    Reason = "Fewer"    // fewer pods are enough
	Bounds   Reason = "Bounds"   // the number of pods is outside its bounds
	Balance  Reason = "Balance"  // there cannot be more pods, and the load can be spread better
	Empty    Reason = "Empty"    // the highest ids own nothing
	Restore  Reason = "Restore"  // another program has changed the target
)

// Decision is what is to be done, and why.
type Decision struct {
	Phase  Phase
	Action Action
	Reason Reason // empty if there is nothing to be done
	// Why is a sentence with the numbers that the decision rests on.
	Why string
	// Wanted is the number of pods that there should be now. It is Seen.Count unless that is to change.
	Wanted int
	// Target is what Assign writes.
	Target placement.Owners
	// Warn says that a person should look.
	Warn bool
	// Moved is the load that Target moves, in units per second.
	Moved float64
	// Oversized are partitions that grow faster than a pod works off.
	Oversized []int
	// Stuck says that the move under way takes longer than Settings.Patience.
	Stuck bool
	// Undone is what was noticed at this moment, nil for nothing.
	Undone *Undone
}

// Undone is a change of the number of pods that the autoscaler had set, by another program.
type Undone struct {
	From, To int
	// By is the field manager that did it, empty if that is not known.
	By string
}

// String returns a sentence with the way out.
func (u Undone) String() string {
	who := "another client"
	if u.By != "" {
		who = fmt.Sprintf("field manager %q", u.By)
	}
	return fmt.Sprintf("%s changed the number of pods from %d, which the autoscaler had set, to %d: take replicas out of what it applies, as docs/autoscaling.md says, because without the line alone the next apply sets 1; "+
		"or run the autoscaler with --scale=false",
		who, u.From, u.To)
}
