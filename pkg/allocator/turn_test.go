package allocator

import (
	"strconv"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// clean is an owner with count slots, the first taken of which have an entry.
func clean(kind string, count, taken int, rollout store.Rollout) store.Owner {
	o := store.Owner{Ref: store.Ref{Kind: kind}, Count: count, Trust: assignment.Clean, Rollout: rollout}
	o.Record.Present, o.Record.Sealed = true, true
	o.Record.State.Slots = assignment.Slots{}
	for id := range taken {
		o.Record.State.Slots[id] = "worker-" + strconv.Itoa(id)
	}
	return o
}

func TestContenders(t *testing.T) {
	rolling := func(p store.Progress) store.Rollout {
		return store.Rollout{MaxSurge: 75, MaxUnavailable: 75, Progress: p}
	}
	steady := store.Progress{Replicas: 300, Updated: 300, Ready: 300, Available: 300}
	foreign := clean(store.Deployment, 300, 300, rolling(steady))
	foreign.Trust = assignment.Foreign
	recreate := rolling(store.Progress{Replicas: 300})
	recreate.Recreate = true
	for name, test := range map[string]struct {
		owner store.Owner
		want  int
	}{
		"all start":                           {clean(store.Deployment, 300, 0, rolling(store.Progress{})), 300},
		"a scale-up":                          {clean(store.Deployment, 310, 300, rolling(steady)), 10},
		"one replaces one":                    {clean(store.Deployment, 300, 300, rolling(steady)), 1},
		"one replaces one, the status knows":  {clean(store.Deployment, 300, 300, rolling(store.Progress{Replicas: 300, Updated: 300, Ready: 299, Available: 299})), 1},
		"a node is drained":                   {clean(store.Deployment, 300, 300, rolling(store.Progress{Replicas: 300, Updated: 300, Ready: 280, Available: 280})), 20},
		"a rolling update begins":             {clean(store.Deployment, 300, 300, rolling(store.Progress{Replicas: 300, Ready: 300, Available: 300})), 150},
		"a rolling update, the last old pod":  {clean(store.Deployment, 300, 300, rolling(store.Progress{Replicas: 301, Updated: 300, Ready: 299, Available: 299})), 150},
		"all are recreated":                   {clean(store.Deployment, 300, 300, recreate), 300},
		"all of a Job are there":              {clean(store.Job, 300, 300, store.Rollout{}), 1},
		"a foreign write, nothing else to do": {foreign, 300},
	} {
		if got := contenders(test.owner); got != test.want {
			t.Errorf("%s: %d contenders, want %d", name, got, test.want)
		}
	}
}
