package peers

import (
	"maps"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// What is seen comes ten seconds after what was seen before. Id 1 is vacant for thirty seconds when its partitions go to others.
func TestWhenAnIDIsVacant(t *testing.T) {
	type seen struct{ pod, idle string }
	for name, tc := range map[string]struct {
		seen []seen
		want map[int]string
	}{
		"no pod is there":                              {[]seen{{}, {}, {}, {}}, map[int]string{1: ""}},
		"for a shorter time":                           {[]seen{{}, {}, {}}, nil},
		"its pod locks it, as far as is known":         {[]seen{{"a", ""}, {"a", ""}, {"a", ""}, {"a", ""}}, nil},
		"its pod locks nothing":                        {[]seen{{"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", "a"}}, map[int]string{1: "a"}},
		"its pod starts slowly":                        {[]seen{{"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", ""}}, nil},
		"it has just got a pod":                        {[]seen{{}, {}, {}, {}, {"a", "a"}}, nil},
		"another pod locks nothing":                    {[]seen{{"a", "b"}, {"a", "b"}, {"a", "b"}, {"a", "b"}}, nil},
		"its pod has gone without locking it":          {[]seen{{"a", "a"}, {"a", "a"}, {}, {}}, map[int]string{1: ""}},
		"its pod was replaced by another idle one":     {[]seen{{"a", "a"}, {"a", "a"}, {"b", "b"}, {"b", "b"}}, nil},
		"its pod locked it for a moment in between":    {[]seen{{"a", "a"}, {"a", ""}, {"a", "a"}, {"a", "a"}}, nil},
		"its pod locked it, and then it had no pod":    {[]seen{{"a", ""}, {}, {}, {}}, nil},
		"it had no pod for a moment, and one for long": {[]seen{{}, {"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", "a"}}, map[int]string{1: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var v Vacancies
			now := time.Unix(0, 0)
			for i, s := range tc.seen {
				if i > 0 {
					now = now.Add(10 * time.Second)
				}
				owner := store.Owner{}
				owner.Record.State = assignment.State{Slots: assignment.Slots{0: "me"}, Row: &assignment.Row{Owners: placement.Owners{0: {}, 1: {}}}}
				if s.pod != "" {
					owner.Record.State.Slots[1] = s.pod
				}
				v.See(owner, map[string]bool{s.idle: true}, now)
			}
			if got := v.Over(30*time.Second, now); !maps.Equal(got, tc.want) {
				t.Errorf("vacant are %v, want %v", got, tc.want)
			}
		})
	}
}
