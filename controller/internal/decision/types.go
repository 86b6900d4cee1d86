package decision

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Owner is the owner in the form that decisions need.
type Owner struct {
	identity.Owner

	Namespace string
	Count     int
	State     assignment.State
	Room      assignment.Room
	// Revision is the UID of the controller of the current revision's pods. It is empty if that is not known.
	Revision string
	// Replaces: the owner is a Deployment. In a rolling update its controller may wait for pods that wait for ids of older ones.
	Replaces bool
	// Blocks: a rolling update starts new pods, but ends no old pod until a new one is available.
	Blocks bool
	// MaxUnavailable is from the Deployment's strategy.
	MaxUnavailable int
	// Frozen names a ReplicaSet that is about to change owners, or has just done so. Until that is over, nothing begins and nothing is removed.
	Frozen string
	// Paused: the user paused the Deployment.
	Paused bool
	// Limit is how many ids may be without an available pod because of removals. 0 means no removals, as for a Job.
	Limit int
	// Turns is how many available pods may restart at a time because the count changed, or how many ids may be without an available pod for that. Evicts is
	// true if the controller may evict a pod for that.
	Turns  int
	Evicts bool
	// ReuseAfter is how long the id of a pod that has ended rests.
	ReuseAfter time.Duration
	// Wish is what the user wants of partitions. RollsNow: each pod that ends has a successor.
	Wish     assignment.Wish
	RollsNow bool
}

// Set is a ReplicaSet of the owner, or a sibling of the owner.
type Set struct {
	// Made: a Deployment made it. Own: it is the owner, or the owner controls it. Loose: nothing controls it, or its controller is a Deployment that is being
	// deleted or is gone.
	Made, Own, Loose bool
}

// Freezes reports whether the ReplicaSet freezes the owner if it has pods or replicas. A ReplicaSet that a Deployment made waits until all others with its
// labels have the same owner. A Deployment waits for those that it is about to adopt.
func (s Set) Freezes(o Owner) bool { return s.Made && !s.Own && (s.Loose || !o.Replaces) }

// Pod is a live pod of the owner, or another pod that locks one of its slots.
type Pod struct {
	proposal.Pod

	// Assigned: the controller takes slots for the pod. Agent: the controller only plans for the pod, and its process takes.
	Assigned, Agent bool
	// Proposal is what was proposed to the agent. Told is true if there is a proposal.
	Proposal receipt.Proposal
	Told     bool
	// Settled: the receipt is covered by the confirmation of an earlier one.
	Settled bool
	// Gated: idalloc's gate is present. OtherGates: other gates are present.
	Gated, OtherGates bool
	// Newer: the pod needs a later contract than this controller keeps.
	Newer bool
	// Under is the owner that the pod's receipt or its identity names, or the zero value.
	Under identity.Owner
	// Older: the pod is of an older revision that its successor would not have, although the current one has the same controller, as in a StatefulSet.
	Older bool
	// Placed: the pod is on a node.
	Placed bool
	// Ready: the pod is Ready. It is available from AvailableAt on.
	Ready       bool
	AvailableAt time.Time
	// Refused: writes on the pod fail. No other pod makes room for it, and it leaves its slot to pods that can be written.
	Refused bool
	// LostAt is when a Terminating pod has used up its grace period since it was first seen. From then on it counts as lost.
	LostAt time.Time
	// Hidden: lists do not find the pod's lock, because its labels contradict its receipt.
	Hidden bool
	// OnCount is what happens to the pod when the count changes, from its annotation. Watcher is the id of the running container that restarts it, and Program
	// that of its first other container.
	OnCount, Watcher, Program string
	// SettledAt is when the pod waits no longer for a stable count, even if there is none. It is zero if that is not known.
	SettledAt time.Time
	// FirstNumber is what the pod asks for as the machine number of id 0, or 0 if it asks for none. BadNumber: what it asks for is invalid.
	FirstNumber int
	BadNumber   bool
	// Text is the receipt's annotation, and Version the pod's resourceVersion.
	Text, Version string
	// ReadsStartCount: something in the pod reads Published.StartCount. Otherwise it is not written, because admission policies of an earlier release refuse
	// it.
	ReadsStartCount bool
	// Published is what Begin wrote. A pod without it never began. A gated pod may have a copy from another pod.
	Published
}

// Lock is what the list of T3 shows of a live pod.
type Lock struct {
	Pod, UID, Text, Version string
	Receipt                 receipt.Receipt
	// Runs is the id under which the pod's program runs, by its annotations, or receipt.NoID.
	Runs int
	// Number is the machine number under which it runs, by its annotations, or 0.
	Number int
	// Overdue: the pod has outlived its grace period.
	Overdue bool
}

// Evidence is what T3 showed, and what it asked for. It confirms nothing else.
type Evidence struct {
	// Locks are the locks of the owner, from one consistent list that was sent after the last receipt was written. It is nil before that.
	Locks []Lock
	// Asked are the slots that the list asked for, as in Decision.Only. It is nil if the list covered all slots and partitions.
	Asked []int
	// Owners are the former owners that the list also covered.
	Owners []string
}

// World is everything that a decision depends on.
type World struct {
	Owner Owner
	Pods  []Pod
	// Evidence is the result of T3.
	Evidence
	// Former names the owners that pods come from. Locks of other pods for these owners also count.
	Former []string
	Now    time.Time
	// Vacant, Joins and Gathers are what the controller has seen of ids that divide partitions. FreeFor is how long a slot has been left to other pods. They
	// are as in package proposal.
	Vacant  map[int]string
	Joins   map[int]bool
	Gathers bool
	FreeFor time.Duration
	// Keeps: the map cannot be written now, so decisions follow the map as it is. No pod takes anything new, and none is removed for another one.
	Keeps bool
	// Unlisted: pods that no watch covers have not been listed since the process started.
	Unlisted bool
	// Verified: everything was read from the API server, not from a cache.
	Verified bool
	// Rests: do not change the map again for pods whose programs failed; it was changed for such pods a moment ago.
	Rests bool
	// QuietSince is since when no pod of an older revision was removed.
	QuietSince time.Time
	// SettledAt is when the count has been stable for as long as the user wants.
	SettledAt time.Time
	// Ends is when the pods of free ids have ended.
	Ends Ends
}

// Take locks a slot of an owner, "Kind/name", for a pod. Begun: the pod's program already runs under that id, with the token Token.
type Take struct {
	Pod   string
	ID    int
	Under string
	Begun bool
	Token int64
	// Number is the machine number that it also locks, or 0.
	Number int
}

// Published are the annotations of a pod that its container reads. StartCount is the count in the environment of a container that starts now. Turn is the start
// count, the watcher and the program at the begin of the pod's turn to restart. It is empty when the turn has ended. Number is the machine number, or empty.
type Published struct{ ID, Count, StartCount, Turn, Number, Identity string }

// Begin lets a pod's program begin with the receipt that T3 showed.
type Begin struct {
	Pod       string
	ID        int
	Under     string
	Token     int64
	Number    int
	Gated     bool
	Published Published
}

// Publish writes the present count and other changes on a pod that has begun.
type Publish struct {
	Pod       string
	Published Published
}

// Cause is the reason for a removal.
type Cause string

// The causes of a removal.
const (
	CauseBroken  Cause = "is of an older revision and not available, and a pod of the current one waits for its id"
	CauseOlder   Cause = "is of an older revision, and a pod of the current one waits for its id"
	CauseAbove   Cause = "has an id above the count, and a lower one is free"
	CauseClashes Cause = "runs under an id that another pod now locks"
	CauseLater   Cause = "runs under an id or a machine number under which another pod began earlier"
	CauseCount   Cause = "started with another count"
)

// Removal removes a pod: by the Eviction API, or by a delete if no disruption budget applies.
type Removal struct {
	Pod   string
	ID    int
	Cause Cause
	Evict bool
}

// Reason is why a pod waits.
type Reason string

// The reasons to wait.
const (
	ReasonTaking      Reason = "taking"      // it is about to get its id
	ReasonRests       Reason = "rests"       // its id has not rested for long enough since its last pod ended
	ReasonSlots       Reason = "slots"       // live pods have all slots
	ReasonRollout     Reason = "rollout"     // as many older pods are going as may go at a time
	ReasonUnavailable Reason = "unavailable" // a pod of the current revision has an id and is not available
	ReasonPaused      Reason = "paused"      // the Deployment is paused
	ReasonNever       Reason = "never"       // idalloc.dev/evict is never
	ReasonKept        Reason = "kept"        // no older pod hands its id over
	ReasonGates       Reason = "gates"       // the pod has other gates
	ReasonContract    Reason = "contract"    // the pod needs a later controller
	ReasonNumber      Reason = "number"      // the pod asks for an invalid machine number
	ReasonNoGate      Reason = "no_gate"     // it has no gate and no id
	ReasonFull        Reason = "full"        // the owner's annotations are full
	ReasonFrozen      Reason = "frozen"      // a ReplicaSet is about to change owners
	ReasonTerminating Reason = "terminating" // it is being deleted
	ReasonRefused     Reason = "refused"     // the API server refuses writes on it
)

// Passes reports whether most waits with this reason end by themselves within a minute.
func (r Reason) Passes() bool {
	return r == ReasonUnavailable || r == ReasonKept || r == ReasonRollout || r == ReasonSlots
}

// sentence returns the reason as an agent and "explain" print it.
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

// Wait is a pod without an id, and why it waits.
type Wait struct {
	Pod    string
	Since  time.Time
	Reason Reason
}

// Decision is everything that should be done.
type Decision struct {
	// List: list the pods that no watch covers before the map is written.
	List bool
	// Plan is the plan. Its Next is written first.
	Plan proposal.Decision
	// Failing: the plan changes the map only for pods whose programs failed. It must not be written while the map rests for these.
	Failing bool
	// Take does T2, and Confirm asks for T3. Only are the slots that T3 must cover. It is nil if T3 must also cover partitions or gated pods.
	Take    []Take
	Confirm bool
	Only    []int
	Begin   []Begin
	// Withdraw names pods whose locks are removed.
	Withdraw []string
	Publish  []Publish
	// Propose are the proposals for agents, the most urgent first: confirmations, then what the agent should take. Agents whose lock waits for T3 come after
	// T3.
	Propose []Propose
	// Probe names pods on which writes were refused and no write is due. They get no proposal for a scarce slot, so no other write would show that they can be
	// written again.
	Probe []string
	// Remove are the removals. Verify: first decide again with a World that is Verified.
	Remove []Removal
	Verify bool
	Waits  []Wait
	// Behind are the pods whose containers have not started with the present count.
	Behind []Behind
	// Rests are the ids that pods wait for and that rest.
	Rests []Rest
	// After is when to decide again if nothing happens, 0 for never.
	After time.Duration
}

// Lost reports whether a Terminating pod has outlived its grace period. Its node may be down, and nothing tells when the pod ends.
func (p Pod) Lost(now time.Time) bool {
	return p.Terminating && !p.LostAt.IsZero() && !p.LostAt.After(now)
}
