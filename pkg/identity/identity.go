// Package identity is what a workload knows about itself: which id it holds, out of how many.
//
// It imports no Kubernetes client, so a workload that only reads the files published by an
// idalloc container can link it without carrying client-go.
//
// # Ids are exclusive, shares are not
//
// No two instances hold one id at the same time. What follows from id and count together, such as the
// keys for which [Identity.Owns] is true, is exclusive only as long as the count stays the same. When it
// changes, every instance hears of it at its own time. Until the slowest one has stopped its work by the
// old count, two instances may work on one key. An instance without contact to the API server goes on
// by the old count until it has contact again, or until it is fenced (strict mode).
//
// The two act under different ids. So no hand-over and no drain hook comes between them, and their
// epochs say nothing about who is right. Where both at once do harm, take a lock or compare a number of
// your own for each key at what is written to, or make work that may be done twice: writes that
// are idempotent, messages that are delivered at least once.
//
// It does not matter where the count does not change while instances run, where the work depends on the id alone
// (a machine number), or where what is done twice is only wasted (two samples of one metric).
package identity

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// State is where an instance is in its life. Only StateAssigned has an id.
type State string

const (
	// StatePending is having no id yet; the instance waits for a slot.
	StatePending State = "pending"
	// StateAssigned is the only state with an id: the instance holds its id and may act under it.
	StateAssigned State = "assigned"
	// StateDraining is before the id is given away; the workload must have stopped using it.
	StateDraining State = "draining"
	// StateReleased is the end: the id was given back and the instance will not claim another one.
	StateReleased State = "released"
	// StateLost is a surprise: the slot belongs to another pod, or the receipt was removed; the id is gone.
	StateLost State = "lost"
	// StateFenced exists in strict mode only: contact with the API server was lost for too long, the id is gone.
	StateFenced State = "fenced"
)

// None is the value of Identity.ID while there is no id.
const None = -1

// Owner names the object that carries the assignment.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String returns "Deployment/worker".
func (o Owner) String() string { return o.Kind + "/" + o.Name }

// Identity is one consistent moment of an instance: ID and Count were read together.
type Identity struct {
	State State
	// ID is in [0, Count) while State is StateAssigned, and None otherwise.
	ID int
	// Count is the owner's desired number of replicas.
	Count int
	// Epoch is the fencing token: constant while the process holds the id, higher for every later
	// holder of the same id. Zero while there is no id. It fits into a float64 (at most 2^53 - 1).
	Epoch     int64
	Pod       string
	Namespace string
	Owner     Owner
}

// Pending returns the identity of a pod that has no id yet.
func Pending(pod, namespace string) Identity {
	return Identity{Pod: pod, Namespace: namespace}.Without(StatePending)
}

// Without returns i without its id, for the reason that state says. The count stays.
func (i Identity) Without(state State) Identity {
	i.State, i.ID, i.Epoch = state, None, 0
	return i
}

// Assigned reports whether the instance may act under ID.
func (i Identity) Assigned() bool { return i.State == StateAssigned }

// String returns "3/5" while assigned and the state otherwise.
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
	Epoch     int64  `json:"epoch"`
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	Owner     Owner  `json:"owner"`
}

// MarshalJSON writes the form of identity.json and of GET /v1/identity; id is null when there is none.
func (i Identity) MarshalJSON() ([]byte, error) {
	w := wire{State: i.State, Count: i.Count, Epoch: i.Epoch, Pod: i.Pod, Namespace: i.Namespace, Owner: i.Owner}
	if i.Assigned() {
		w.ID = &i.ID
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. An assigned identity without an id, or with an id
// outside [0, count), is an error: acting on it would not be safe.
func (i *Identity) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("idalloc: identity: %w", err)
	}
	id := None
	if w.State == StateAssigned {
		if w.ID == nil || *w.ID < 0 || *w.ID >= w.Count {
			return fmt.Errorf("idalloc: identity: state is assigned, but the id is missing or not in [0, %d)", w.Count)
		}
		id = *w.ID
	}
	*i = Identity{State: w.State, ID: id, Count: w.Count, Epoch: w.Epoch, Pod: w.Pod, Namespace: w.Namespace, Owner: w.Owner}
	return nil
}
