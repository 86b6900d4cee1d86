package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// gone is the state of a slot whose pod does not exist any more.
const gone = "pod gone"

// mood is how a row is doing; displays give it a colour.
type mood int

const (
	fine    mood = iota // a pod holds the slot and says so
	leaving             // the pod is being deleted, or has to move
	coming              // the pod is not there yet, or has no slot
	empty               // nobody has the slot
)

// row is a line of the table.
type row struct {
	id, pod, state, says, note string
	created                    time.Time
	mood                       mood
}

func (r row) age(now time.Time) string {
	if r.created.IsZero() {
		return ""
	}
	// The API server's times have whole seconds, so a new pod may seem to be from the future.
	return strconv.Itoa(int(max(0, now.Sub(r.created)).Seconds())) + "s"
}

// frame is one moment of the workload.
type frame struct {
	count int
	rows  []row
	// holders is the id by pod, of pods that say themselves that they have it, and of which the
	// Deployment says the same.
	holders map[string]int
	// exist are the names of all pods, ready is how many of them are Ready and not being deleted.
	exist map[string]bool
	ready int
	// writes is how often idalloc wrote to the Deployment, pods how many there have been, so far.
	writes, pods int
	assignment   string
}

// settled says that n pods hold 0 to n-1 and there is nothing else.
func (f frame) settled(n int) bool {
	if f.count != n || len(f.exist) != n || f.ready != n || len(f.holders) != n || len(f.rows) != n {
		return false
	}
	return !slices.ContainsFunc(f.rows, func(r row) bool { return r.mood != fine })
}

// build makes a frame. The caller has the lock.
func (o *observer) build() frame {
	f := frame{
		count: o.view.Count, holders: map[string]int{}, exist: map[string]bool{},
		writes: len(o.seals), pods: len(o.everSeen), assignment: o.assignment,
	}
	pods := map[string]*corev1.Pod{}
	for _, pod := range o.pods {
		pods[pod.Name] = pod
		f.exist[pod.Name] = true
		if suite.Ready(pod) && pod.DeletionTimestamp == nil {
			f.ready++
		}
	}
	for _, slot := range o.view.Slots {
		r := o.slotRow(slot, pods[slot.Pod])
		if r.mood == fine {
			f.holders[r.pod] = slot.ID
		}
		f.rows = append(f.rows, r)
	}
	for _, name := range o.view.Waiting {
		if pod := pods[name]; pod != nil {
			f.rows = append(f.rows, row{id: "-", pod: name, state: "waiting", says: "no id yet", note: o.note(name, identity.None), created: pod.CreationTimestamp.Time, mood: coming})
		}
	}
	return f
}

func (o *observer) slotRow(slot inspect.Slot, pod *corev1.Pod) row {
	r := row{id: strconv.Itoa(slot.ID), pod: cmp.Or(slot.Pod, "-"), state: string(slot.State), says: "-", mood: leaving}
	if slot.State == inspect.Free {
		r.mood = empty
		return r
	}
	if pod == nil {
		r.state = gone
		return r
	}
	r.created = pod.CreationTimestamp.Time
	says, answers := o.says[pod.UID]
	if answers {
		r.says = sentence(says)
	}
	r.note = o.note(pod.Name, slot.ID)
	switch {
	case pod.DeletionTimestamp != nil || slot.Terminating:
		r.state, r.note = "terminating", ""
	case answers && says.State == identity.StateDraining:
		r.state = "draining"
	case slot.ID >= o.view.Count:
		r.state = "must move"
	case slot.State != inspect.Held:
	case answers && says.Assigned() && says.ID == slot.ID && says.Count == o.view.Count:
		r.mood = fine
	case answers && says.Assigned() && says.ID == slot.ID:
		r.mood = coming // has not yet heard of the new count
	default:
		r.state, r.mood = "starting", coming
	}
	return r
}

// note says what changed for a pod since the phase began.
func (o *observer) note(pod string, id int) string {
	was, known := o.baseline[pod]
	switch {
	case len(o.baseline) == 0 || known && was == id:
		return ""
	case !known:
		return "new"
	case id == identity.None:
		return fmt.Sprintf("had %d", was)
	default:
		return fmt.Sprintf("moved from %d", was)
	}
}

// sentence is what an identity says in the first person.
func sentence(id identity.Identity) string {
	if id.Assigned() {
		return fmt.Sprintf("I am %d of %d", id.ID, id.Count)
	}
	if id.State == identity.StatePending {
		return "no id yet"
	}
	return string(id.State)
}
