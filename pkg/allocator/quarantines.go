package allocator

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Memory keeps a few bytes for the next process of this pod. It is used from the goroutine of Run or Claim.
type Memory interface {
	// Load returns what was saved last, nil if nothing was.
	Load() ([]byte, error)
	Save([]byte) error
}

// settled is how old an epoch must be, by this machine's wall clock, before the next process may count it. No other
// clock is so far behind that it could give the same epoch again (docs/protocol.md).
const settled = 5 * time.Second

// quarantines counts, by this machine's clock, for how long this process or one before it has known of each quarantine.
type quarantines struct {
	now   func() time.Duration // a clock that goes on in suspend
	first map[int64]sight      // by epoch
	// counted are those that were over when served was called last.
	counted map[int64]bool
	// owner is whose quarantines these are.
	owner  types.UID
	keeper keeper
	log    logr.Logger
}

// sight is when a quarantine was seen.
type sight struct {
	// since is the first time.
	since time.Duration
	// settled is the first time at which its epoch was settled, from when the next process may count; zero if it was not yet.
	settled time.Duration
}

// see takes in what one moment of the owner, from a read, a write or a stream, says of quarantines.
func (q *quarantines) see(owner store.Owner, wall time.Time) {
	state := owner.Record.State
	if !owner.Trust.Believed() {
		state = assignment.State{} // whoever restores it starts all quarantines anew
	}
	if q.owner != owner.UID {
		q.owner, q.first = owner.UID, map[int64]sight{}
		left := q.keeper.load()
		if owner.Clean() {
			q.recall(left, q.keeper.boot)
		}
	}
	q.note(state, wall)
	r := q.record(q.keeper.boot)
	if !owner.Clean() {
		clear(r.Since) // nobody could tell an old state that somebody brings back from this one
	}
	failing := q.keeper.failed
	if err := q.keeper.save(r); err != nil && !failing {
		q.log.Info("what is known of quarantines cannot be kept for the next process", "reason", err.Error())
	}
}

// note takes in what the owner says at the wall clock's time. An epoch that is not there any more is forgotten: if it
// comes back, somebody brought an old state back.
func (q *quarantines) note(state assignment.State, wall time.Time) {
	first := make(map[int64]sight, len(q.first))
	for _, epoch := range state.Quarantine.Epochs() {
		seen, known := q.first[epoch]
		if !known {
			seen.since = q.now()
		}
		if seen.settled == 0 && epoch <= wall.Add(-settled).UnixMilli() {
			seen.settled = q.now()
		}
		first[epoch] = seen
	}
	q.first = first
}

// served returns the epochs of the quarantines that are over, given how long one takes. next counts from this call.
func (q *quarantines) served(length time.Duration) map[int64]bool {
	served := map[int64]bool{}
	for epoch, seen := range q.first {
		if q.now()-seen.since >= length {
			served[epoch] = true
		}
	}
	q.counted = served
	return served
}

// next returns how long it is until the next quarantine is over, of those that were not over at the last plan. It is 0 if one
// ended while that plan was made. ok is false if there is none.
func (q *quarantines) next(length time.Duration) (in time.Duration, ok bool) {
	for epoch, seen := range q.first {
		left := max(0, seen.since+length-q.now())
		if !q.counted[epoch] && (!ok || left < in) {
			in, ok = left, true
		}
	}
	return in, ok
}

// remembered is what one process leaves to the next. It says nothing on another boot or of another owner.
type remembered struct {
	Boot  string                  `json:"boot"`
	Owner types.UID               `json:"owner"`
	Since map[int64]time.Duration `json:"since"`
}

// record returns what the next process on this boot may count from.
func (q *quarantines) record(boot string) remembered {
	r := remembered{Boot: boot, Owner: q.owner, Since: map[int64]time.Duration{}}
	for epoch, seen := range q.first {
		if seen.settled > 0 {
			r.Since[epoch] = seen.settled
		}
	}
	return r
}

// recall takes in what an earlier process left, without what may be of another boot, another owner or the future.
func (q *quarantines) recall(r remembered, boot string) {
	if boot == "" || r.Boot != boot || r.Owner != q.owner {
		return
	}
	for epoch, since := range r.Since {
		if since > 0 && since <= q.now() {
			q.first[epoch] = sight{since: since, settled: since}
		}
	}
}

// keeper passes what a process knows of quarantines on to the next one.
type keeper struct {
	memory Memory
	// boot is the boot of this machine that its clock counts from, empty if that is not known. Then nothing that was saved counts.
	boot string
	// saved is what the memory has.
	saved remembered
	// failed says that the last time it could not be saved.
	failed bool
}

// load returns what was saved last, and nothing if that cannot be read.
func (k *keeper) load() remembered {
	k.saved = remembered{}
	if k.memory == nil {
		return k.saved
	}
	b, err := k.memory.Load()
	if err != nil || json.Unmarshal(b, &k.saved) != nil {
		k.saved = remembered{}
	}
	return k.saved
}

// save keeps r for the next process if that is news.
func (k *keeper) save(r remembered) error {
	same := k.saved.Boot == r.Boot && k.saved.Owner == r.Owner && maps.Equal(k.saved.Since, r.Since)
	none := len(k.saved.Since) == 0 && len(r.Since) == 0
	if k.memory == nil || (!k.failed && (same || none)) {
		return nil
	}
	b, err := json.Marshal(r)
	if err == nil {
		err = k.memory.Save(b)
	}
	k.saved, k.failed = r, err != nil
	return err
}
