package event_test

import (
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// hears notes under a name what it is told.
type hears struct {
	name  string
	heard *[]string
}

// Observe implements event.Observer.
func (h hears) Observe(e event.Event) {
	if taken, is := e.(event.Taken); is && taken.ID == 3 {
		*h.heard = append(*h.heard, h.name)
	}
}

func TestAFailoverReadsAsASentence(t *testing.T) {
	for want, f := range map[string]event.Failover{
		"partitions 0-3 of id 1, which no pod has held for 31s, went to ids 0, 2":   {ID: 1, Partitions: "0-3", To: []int{0, 2}, After: 31 * time.Second},
		"partitions 7 of id 4, which no pod has held for 1m0s, went to id 5":        {ID: 4, Partitions: "7", To: []int{5}, After: time.Minute + time.Millisecond},
		"partitions 7 of id 4, which no pod holds, went to id 5":                    {ID: 4, Partitions: "7", To: []int{5}},
		"partitions 8 of id 4, which no pod has held for 30s, went to no id so far": {ID: 4, Partitions: "8", After: 30 * time.Second},
	} {
		if got := f.String(); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}

func TestADivisionReadsAsAPartOfASentence(t *testing.T) {
	for want, d := range map[string]event.Division{"no partitions": {}, "64 partitions by strategy range": {Count: 64, Strategy: "range"}} {
		if got := d.String(); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}

func TestEachObserverIsToldInItsTurn(t *testing.T) {
	var heard []string
	event.Observers{hears{"log", &heard}, hears{"metrics", &heard}}.Tell(event.Taken{ID: 3})
	if want := []string{"log", "metrics"}; !slices.Equal(heard, want) {
		t.Errorf("%v were told, want %v", heard, want)
	}
}
