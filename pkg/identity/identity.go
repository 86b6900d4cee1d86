// Package identity defines what an instance of a workload knows about itself: its id, and how many ids there are. Its API is stable: any program may rely
// on it.
//
// Read and Follow read the files that an idalloc container publishes. The package imports no Kubernetes client, so a
// program that only reads the files does not link client-go.
//
// # Ids are exclusive, shares are not
//
// No two instances hold one id at the same time. A share of the work that follows from id and count together, such as the keys for which [Identity.Owns]
// returns true, is exclusive only while the count stays the same. When the count changes, each instance learns of it at a different moment. Until the
// slowest one has stopped its work by the old count, two instances may work on one key. An instance without contact to the API server uses the old count
// until contact returns, or until it is fenced (strict mode).
//
// These two instances act under different ids. So no hand-over and no drain hook separates them, and their tokens do not tell which of them is right. If
// that can do harm, protect each key in the system that the work writes to, by a lock or by a version number of your own. Or make it safe to do the work
// twice: use idempotent writes, or deliver messages at least once.
//
// There is no problem if the count does not change while instances run, if the work depends only on the id (a machine number), or if duplicate work is
// merely wasted (two samples of one metric).
package identity

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// State is the state of an instance. It has an id only in StateAssigned.
type State string

const (
	// StatePending means that the instance waits for a slot.
	StatePending State = "pending"
	// StateAssigned means that the instance holds its id and may act under it. This is the only state with an id.
	StateAssigned State = "assigned"
	// StateDraining means that the instance is about to give its id away. The program must stop using it.
	StateDraining State = "draining"
	// StateReleased means that the instance has released its id and will not claim another one.
	StateReleased State = "released"
	// StateLost means that the id is gone, because another pod has the slot, or because the pod's receipt was removed. The instance claims another slot.
	StateLost State = "lost"
	// StateFenced means that the id is gone, because the instance had no contact with the API server for too long. It retakes the slot when contact
	// returns. Only strict mode has this state.
	StateFenced State = "fenced"
)

// None is the value of Identity.ID in all states but StateAssigned.
const None = -1

// Owner names the object that carries the assignment.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String returns "Deployment/worker". A kind that is not built into Kubernetes includes its group, as in "Rollout.argoproj.io/worker", because two groups
// may have a kind of the same name. The version of the group does not matter.
func (o Owner) String() string {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped || group == "apps" || group == "batch" {
		return o.Kind + "/" + o.Name
	}
	return o.Kind + "." + group + "/" + o.Name
}

// Identity is one consistent state of an instance: ID and Count were read together, and Partitions belong to the id. Identities can be compared with ==.
type Identity struct {
	State State
	// ID is in [0, Count) while State is StateAssigned, and None otherwise.
	ID int
	// Count is the owner's desired number of replicas.
	Count int
	// Token is the fencing token of the id. It is constant while the process holds the id, and higher for every later holder of the same id. It is not a
	// time. It is 0 while there is no id. It may be above 2^53, where a float64 rounds it.
	Token int64
	// Number is the machine number of a pod that asks for one, and 0 for others. It is constant while the pod holds the id.
	Number int
	// Pod and Namespace name the instance's pod.
	Pod       string
	Namespace string
	// Owner is the object that carries the assignment. It is empty until the pod's owner is known.
	Owner Owner
	// Stop is the number of the drain while State is StateDraining and the program should report over HTTP that it has stopped. It is 0 otherwise. The
	// report contains the number, so that a late report for an earlier drain does not count.
	Stop int
	// Partitions are those of an instance that works on partitions, and zero for others.
	Partitions Partitions
}

// Pending returns the identity of a pod that has no id yet.
func Pending(pod, namespace string) Identity {
	return Identity{Pod: pod, Namespace: namespace}.Without(StatePending)
}

// Without returns i in this state, without id, token, number and partitions. The counts stay.
func (i Identity) Without(state State) Identity {
	i.State, i.ID, i.Token, i.Number, i.Stop = state, None, 0, 0, 0
	i.Partitions = i.Partitions.none()
	return i
}

// Assigned reports whether the instance may act under ID.
func (i Identity) Assigned() bool { return i.State == StateAssigned }

// String returns id and count, such as "3/5", while an id is assigned. Otherwise it returns the state.
func (i Identity) String() string {
	if !i.Assigned() {
		return string(i.State)
	}
	return strconv.Itoa(i.ID) + "/" + strconv.Itoa(i.Count)
}

type wire struct {
	State     State  `json:"state"`
	ID        *int   `json:"id"`
	Count     int    `json:"count"`
	Token     int64  `json:"token"`
	TokenText string `json:"tokenText"` // for readers whose numbers are float64
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	Owner     Owner  `json:"owner"`
	// These are omitted where they do not apply. Then the bytes are the same as before they existed.
	Number     int             `json:"number,omitempty"`
	Stop       int             `json:"stop,omitempty"`
	Partitions *partitionsWire `json:"partitions,omitempty"`
}

// MarshalJSON writes the form of identity.json and of GET /v1/identity. id is null while there is none.
func (i Identity) MarshalJSON() ([]byte, error) {
	w := wire{
		State: i.State, Count: i.Count, Token: i.Token, TokenText: strconv.FormatInt(i.Token, 10), Pod: i.Pod, Namespace: i.Namespace, Owner: i.Owner,
		Stop: i.Stop, Partitions: i.Partitions.wire(),
	}
	if i.Assigned() {
		w.ID, w.Number = &i.ID, i.Number
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the form that MarshalJSON writes. It returns an error for an assigned identity without an id, or with
// an id outside [0, count), or with partitions that contradict each other, because it would not be safe to act on it.
func (i *Identity) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	id, machine := None, 0
	if w.State == StateAssigned {
		if w.ID == nil || *w.ID < 0 || *w.ID >= w.Count {
			return fmt.Errorf("identity: state is assigned, but the id is missing or not in [0, %d)", w.Count)
		}
		id, machine = *w.ID, w.Number
	}
	partitions, err := w.Partitions.partitions()
	if err != nil {
		return err
	}
	if w.State != StateAssigned {
		partitions = partitions.none()
	}
	*i = Identity{
		State: w.State, ID: id, Count: w.Count, Token: w.Token, Number: machine, Pod: w.Pod, Namespace: w.Namespace, Owner: w.Owner,
		Stop: w.Stop, Partitions: partitions,
	}
	return nil
}
