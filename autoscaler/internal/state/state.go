// Package state is what a leading autoscaler reports about itself: the loads as it sees them, what it wants, and why it does nothing.
package state

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/internal/loopback"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// Path is where an autoscaler serves its State.
	Path = "/state"
	// KeyHeader is the header with the key. Audit logs contain no headers, but they do contain queries.
	KeyHeader = "Idalloc-Key"
)

// State is one moment of an autoscaler.
type State struct {
	// At is the time of the decision.
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace"`
	Owner     string    `json:"owner"`

	Phase  decide.Phase  `json:"phase"`
	Action decide.Action `json:"action"`
	Reason decide.Reason `json:"reason,omitempty"`
	Why    string        `json:"why"`
	// Error explains why the last step could not read the loads, or read or write the owner.
	Error string `json:"error,omitempty"`

	Pods       int     `json:"pods"`
	PodsWanted int     `json:"podsWanted"`
	Capacity   float64 `json:"podCapacityUnitsPerSecond"`
	// Load is the load of all partitions about which something is known. LoadAt is the time at which the oldest of the latest values was measured.
	Load   float64   `json:"loadUnitsPerSecond"`
	LoadAt time.Time `json:"loadAt,omitzero"`

	IDs        []ID        `json:"ids"`
	Partitions []Partition `json:"partitions"`
}

// ID is an id below the number of pods, or a higher one that still owns something.
type ID struct {
	ID int `json:"id"`
	// Load is the speed of what it owns, with the margins.
	Load       float64 `json:"loadUnitsPerSecond"`
	Partitions string  `json:"partitions"`
	// Absent explains why its pod cannot work. It is empty if the pod can.
	Absent string `json:"absent,omitempty"`
}

// Partition is one partition.
type Partition struct {
	Partition int `json:"partition"`
	// ID is the owner, Target the owner by the target in force. Nil means no id.
	ID     *int `json:"id"`
	Target *int `json:"target"`
	// Load is nil if unknown.
	Load *float64 `json:"loadUnitsPerSecond"`
}

// of returns the state after a step in which the owner was read.
func of(r loop.Report, settings decide.Settings, ref kinds.Ref) State {
	seen, d := r.Seen, r.Decision
	s := State{
		At: r.Now, Namespace: ref.Namespace, Owner: ref.String(), Phase: d.Phase, Action: d.Action, Reason: d.Reason, Why: d.Why,
		Pods: seen.Count, PodsWanted: d.Wanted, Capacity: settings.Capacity, LoadAt: seen.Loads.At, IDs: []ID{}, Partitions: []Partition{},
	}
	load := func(p int) (float64, bool) {
		if p >= len(seen.Loads.Speeds) || seen.Loads.Missing.Contains(p) {
			return 0, false
		}
		return seen.Loads.Speeds[p], true
	}
	owners, targets := byPartition(seen.Row), byPartition(seen.Target)
	for p := range seen.Partitions {
		one := Partition{Partition: p, ID: owners[p], Target: targets[p]}
		if v, known := load(p); known {
			one.Load = &v
			s.Load += v
		}
		s.Partitions = append(s.Partitions, one)
	}
	for _, id := range shown(seen) {
		set, member := seen.Row[id]
		one := ID{ID: id, Partitions: set.String(), Absent: seen.Absent[id]}
		if !member && one.Absent == "" {
			one.Absent = "its pod has not begun to work on partitions"
		}
		for p := range set.All() {
			v, _ := load(p)
			one.Load += v + settings.Margin
		}
		s.IDs = append(s.IDs, one)
	}
	return s
}

// maxShown limits how many ids without a member are shown. No map has room for more. Others write the number of pods, so it must not decide how much memory is
// used.
const maxShown = 16_384

// shown returns the ids below the number of pods, and those that the row names, in ascending order.
func shown(seen decide.Seen) []int {
	ids := seen.Row.IDs()
	for id := range min(seen.Count, maxShown) {
		if _, named := seen.Row[id]; !named {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func byPartition(owners placement.Owners) map[int]*int {
	whose := map[int]*int{}
	for id, set := range owners {
		for p := range set.All() {
			whose[p] = &id
		}
	}
	return whose
}

// Latest serves the state of the last step. It is safe for concurrent use.
type Latest struct {
	Settings decide.Settings
	Ref      kinds.Ref
	// Key must be in the header KeyHeader of a request that does not come from loopback. If Key is empty, such requests are refused.
	Key string

	mu    sync.Mutex
	state *State // nil while this process does not lead, or has not read the owner yet
}

// Observe stores the report of one step.
func (l *Latest) Observe(r loop.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Decision.Phase != "" { // the owner was read
		s := of(r, l.Settings, l.Ref)
		l.state = &s
	}
	if l.state == nil {
		return
	}
	next := *l.state
	next.Error = ""
	for _, err := range []error{r.SourceErr, r.Err} {
		if err != nil {
			next.Error = err.Error()
		}
	}
	l.state = &next
}

// Leads sets whether this process decides. Otherwise it has no state.
func (l *Latest) Leads(leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !leads {
		l.state = nil
	}
}

// ServeHTTP answers with the state as JSON, with 503 if there is none, or with 401 if the request lacks the key.
func (l *Latest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if here := loopback.Is(r) && loopback.Forwarded(r) == ""; !here && !l.knows(r) {
		http.Error(w, "only requests from this pod's loopback, and those of idalloc-autoscaler get, which reads the key from the Lease, are answered: "+
			"use that, or kubectl port-forward", http.StatusUnauthorized)
		return
	}
	l.mu.Lock()
	s := l.state
	l.mu.Unlock()
	if s == nil {
		http.Error(w, "this autoscaler does not lead, or has not read the workload yet", http.StatusServiceUnavailable)
		return
	}
	body, err := json.Marshal(s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may have gone away
}
