package allocator

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// What a waiter hears of makes it plan only if it matters to the waiter.
func TestWhatMatters(t *testing.T) {
	full := plan.Decision{HandOver: plan.HandOver{Able: 1, UnderWay: 1, Limit: 1}}
	noRoom := plan.Decision{TooLarge: &assignment.TooLargeError{}}
	for name, tc := range map[string]struct {
		came   plan.Decision
		change func(*store.Owner)

		unmoved, rolledOn bool
	}{
		"nothing changed":                    {plan.Decision{}, func(*store.Owner) {}, true, false},
		"only the epoch":                     {plan.Decision{}, func(o *store.Owner) { o.Record.State.Epoch++ }, true, false},
		"an entry":                           {plan.Decision{}, func(o *store.Owner) { delete(o.Record.State.Slots, 0) }, false, false},
		"a request":                          {plan.Decision{}, func(o *store.Owner) { o.Record.State.Handover = assignment.Slots{0: "x"} }, false, false},
		"the count":                          {plan.Decision{}, func(o *store.Owner) { o.Count++ }, false, false},
		"the owner was made anew":            {plan.Decision{}, func(o *store.Owner) { o.UID = "other" }, false, false},
		"somebody else wrote the map":        {plan.Decision{}, func(o *store.Owner) { o.Trust = assignment.Foreign }, false, false},
		"other annotations":                  {plan.Decision{}, func(o *store.Owner) { o.Annotations = map[string]string{"team": "x"} }, true, false},
		"other annotations, in want of room": {noRoom, func(o *store.Owner) { o.Annotations = map[string]string{"team": "x"} }, false, false},
		"a new revision":                     {plan.Decision{}, func(o *store.Owner) { o.Rollout.Revision = "2" }, true, true},
		"a pod became available":             {plan.Decision{}, func(o *store.Owner) { o.Rollout.Progress.Available++ }, true, false},
		"and the limit was in the way":       {full, func(o *store.Owner) { o.Rollout.Progress.Available++ }, true, true},
	} {
		then := clean(store.Deployment, 3, 2, store.Rollout{Revision: "1"})
		then.UID = ownerUID
		now := then
		now.Record.State = then.Record.State.Clone()
		tc.change(&now)
		o := &outlook{planned: then, outcome: tc.came}
		if unmoved, rolledOn := o.unmoved(now), o.rolledOn(now, tc.came); unmoved != tc.unmoved || rolledOn != tc.rolledOn {
			t.Errorf("%s: unmoved %t, rolled on %t", name, unmoved, rolledOn)
		}
	}
}
