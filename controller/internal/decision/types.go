package decision

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Owner is what the decisions depend on.
type Owner struct {
	identity.Owner

	Namespace string
	Count     int
	State     assignment.State
	Room      assignment.Room
	// Revision is the controller of the current revision's pods. It is empty while that is not known.
	Revision string
	// Replaces says that the owner is a Deployment: in a rolling update its controller may wait for pods that wait for ids of older ones.
	Replaces bool
	// Blocks says that a rolling update starts new pods, but ends no old one until a new one is available.
	Blocks bool
	// MaxUnavailable is that of the Deployment's strategy.
	MaxUnavailable int
	// Frozen names a ReplicaSet that is about to change hands, or has just done so. Until that is over, nothing begins and nothing is removed.
	Frozen string
	// Paused says that the user paused the Deployment.
	Paused bool
	// Limit is how many ids may be without an available pod because of a removal. 0 turns removals off, as for a Job.
	Limit int
	// Turns is how many available pods may restart at a time because the count changed, or how many ids may lack an available pod. Evicts says that the
	// controller may evict a pod for that.
	Turns  int
	Evicts bool
	// Wish is what the user wants of partitions. RollsNow says that each pod that ends has a successor.
	Wish     assignment.Wish
	RollsNow bool
}

// Set is a ReplicaSet beside the owner or below it.
type Set struct {
	// Made says that a Deployment made it, Own that it is the owner or that the owner controls it, and Loose that nothing controls it, or a Deployment that
	// is being deleted.
	Made, Own, Loose bool
}

// Freezes reports whether the owner is frozen if the ReplicaSet has pods or replicas. A ReplicaSet that a Deployment made waits for all others with its
// labels to have its owner. A Deployment waits for those that it is about to adopt.
func (s Set) Freezes(o Owner) bool { return s.Made && !s.Own && (s.Loose || !o.Replaces) }

// Pod is a live pod of the owner, or another one that locks one of its slots.
type Pod struct {
	proposal.Pod

	// Assigned says that the controller takes for the pod. Agent says that it plans for the pod, whose process takes for itself.
	Assigned, Agent bool
	// Proposal is what the process was told, and Told says that it was.
	Proposal receipt.Proposal
	Told     bool
	// Settled says that its receipt is as confirmed as an earlier one that was.
	Settled bool
	// Gated says that idalloc's gate is there, and OtherGates that other gates are.
	Gated, OtherGates bool
	// Newer says that the pod needs a later contract than this controller keeps.
	Newer bool
	// Under is the owner that the pod's receipt names, or its identity. It is the zero value if neither names one.
	Under identity.Owner
	// Placed says that the pod is on a node.
	Placed bool
	// Ready says that the pod is Ready. It is available from the time AvailableAt on.
	Ready       bool
	AvailableAt time.Time
	// Refused: writes on the pod fail. No other pod makes room for it, and it leaves its slot to pods that can be written.
	Refused bool
	// LostAt is when a Terminating pod has been seen so for its grace period. It counts as lost from then on.
	LostAt time.Time
	// Hidden says that lists do not find what the pod locks: its labels say something else than its receipt.
	Hidden bool
	// OnCount is what happens to the pod when the count changes, as its annotation says, and Watcher names the container that restarts it, as it runs now.
	OnCount, Watcher string
	// Text is the receipt's annotation, and Version the pod's resourceVersion.
	Text, Version string
	// ReadsStartCount says that something in the pod reads Published.StartCount. Without that it is not written: admission policies of an earlier release refuse it.
	ReadsStartCount bool
	// Published are what Begin wrote. A pod without them never began. Behind its gate, a pod may have those of another.
	Published
}

// Lock is what the list of T3 shows of a live pod.
type Lock struct {
	Pod, UID, Text, Version string
	Receipt                 receipt.Receipt
	// Runs is the id under which the pod's program runs by its annotations, receipt.NoID without one.
	Runs int
	// Overdue says that the pod has outlived its grace period.
	Overdue bool
}

// Evidence is what T3 shows, with what that is about. Nothing else is confirmed by it.
type Evidence struct {
	// Locks are locks of the owner, from one consistent list that was sent after the last receipt was written. It is nil before that.
	Locks []Lock
	// Asked are the slots that the list was about, as in Decision.Only. It is nil if the list was about all slots and partitions.
	Asked []int
	// Owners are the former owners that the list was about, too.
	Owners []string
}

// World is what a decision depends on.
type World struct {
	Owner Owner
	Pods  []Pod
	// Evidence is that of T3.
	Evidence
	// Former names the owners that pods come from. What others lock of these counts, too.
	Former []string
	Now    time.Time
	// Vacant, Joins and Gathers say what the controller has seen of ids that divide partitions, and FreeFor for how long a slot has been left to other
	// pods. They are as in package proposal.
	Vacant  map[int]string
	Joins   map[int]bool
	Gathers bool
	FreeFor time.Duration
	// Keeps: the map cannot be written now, so decisions follow the map as it stands. No pod takes anything new, and none is removed for another one.
	Keeps bool
	// Unlisted: the pods that no watch has were not listed since the process started.
	Unlisted bool
	// Verified: everything comes from the API server, and not from a cache.
	Verified bool
	// Rests says that the map stays as it is for pods whose programs failed, because it changed for such pods a moment ago.
	Rests bool
	// QuietSince is since when no pod of an older revision was removed.
	QuietSince time.Time
	// SettledAt is when the count has stood still for as long as the user wants.
	SettledAt time.Time
}

// Take locks a slot of an owner, "Kind/name", for a pod. Begun says that its program runs under that id already, and Token is the one that it has then.
type Take struct {
	Pod   string
	ID    int
	Under string
	Begun bool
	Token int64
}

// Published are the annotations of a pod that its container reads. StartCount is the count for the variable of a container that starts now. Turn is what
// the pod had when its turn to restart began, until the turn has ended: the start count, and its watcher.
type Published struct{ ID, Count, StartCount, Turn, Identity string }

// Begin lets a pod's program begin. The pod has the receipt that T3 showed.
type Begin struct {
	Pod       string
	ID        int
	Under     string
	Token     int64
	Gated     bool
	Published Published
}

// Publish tells a pod that has begun the new count.
type Publish struct {
	Pod       string
	Published Published
}

// Cause says why a pod is removed.
type Cause string

// The causes.
const (
	CauseBroken  Cause = "is of an older revision and not available, and a pod of the current one waits for its id"
	CauseOlder   Cause = "is of an older revision, and a pod of the current one waits for its id"
	CauseAbove   Cause = "has an id above the count, and a lower one is free"
	CauseClashes Cause = "runs under an id that another pod locks by now"
	CauseLater   Cause = "runs under an id under which another pod began earlier"
	CauseCount   Cause = "started with another count"
)

// Removal removes a pod: by the Eviction API, or by a delete if no budget is to be asked.
type Removal struct {
	Pod   string
	ID    int
	Cause Cause
	Evict bool
}

// Reason says why a pod waits.
type Reason string

// The reasons.
const (
	ReasonTaking      Reason = "taking"      // it is about to get its id
	ReasonSlots       Reason = "slots"       // live pods have all slots
	ReasonRollout     Reason = "rollout"     // as many older pods go at a time as may
	ReasonUnavailable Reason = "unavailable" // a pod of the current revision has an id and is not available
	ReasonPaused      Reason = "paused"      // the Deployment is paused
	ReasonNever       Reason = "never"       // idalloc.dev/evict is never
	ReasonKept        Reason = "kept"        // no older pod hands its id over
	ReasonGates       Reason = "gates"       // the pod has other gates
	ReasonContract    Reason = "contract"    // the pod needs a later controller
	ReasonNoGate      Reason = "no_gate"     // it has no gate, and no id
	ReasonFull        Reason = "full"        // the owner's annotations are full
	ReasonFrozen      Reason = "frozen"      // a ReplicaSet is about to change hands
	ReasonTerminating Reason = "terminating" // it is being deleted
	ReasonRefused     Reason = "refused"     // the API server refuses writes on it
)

// Passes reports whether most waits with this reason end by themselves within a minute.
func (r Reason) Passes() bool {
	return r == ReasonUnavailable || r == ReasonKept || r == ReasonRollout || r == ReasonSlots
}

// sentence is the reason in the words in which an agent and "explain" say it.
func (r Reason) sentence() string {
	switch r { //nolint:exhaustive // an agent waits for nothing else
	case ReasonTerminating:
		return "it is being deleted"
	case ReasonFrozen:
		return "a ReplicaSet of the workload changes hands"
	case ReasonFull:
		return "the annotations of the workload have no room for its name"
	case ReasonRollout, ReasonKept:
		return "pods of older revisions have ids, until they hand them over or end"
	}
	return "no id is free for it yet"
}

// Wait is a pod that has no id.
type Wait struct {
	Pod    string
	Since  time.Time
	Reason Reason
}

// Decision is everything that is to be done by what is known.
type Decision struct {
	// List asks for the pods that no watch has, before the map is written.
	List bool
	// Plan is the plan. What its Next says is written first.
	Plan proposal.Decision
	// Failing says that the plan changes the map only for pods whose programs failed. If the map rests for these, it is not to be written now.
	Failing bool
	// Take is T2, Confirm asks for T3. Only are the slots that this is about, nil if it is about partitions, too, or about gated pods.
	Take    []Take
	Confirm bool
	Only    []int
	Begin   []Begin
	// Withdraw names pods whose lock goes.
	Withdraw []string
	Publish  []Publish
	// Propose is what processes are told, those whose lock waits for T3 after it. The most urgent is the first: confirmations, then what is to be taken.
	Propose []Propose
	// Probe names pods on which writes were refused and nothing is to be written now. They are proposed no slot that is scarce, so no write would
	// ever find out whether they are still refused.
	Probe []string
	// Remove are removals. Verify asks for a World that is Verified before they are made.
	Remove []Removal
	Verify bool
	Waits  []Wait
	// Behind are the pods whose containers have not started with the present count.
	Behind []Behind
	// After is when to decide again if nothing happens, 0 for never.
	After time.Duration
}
