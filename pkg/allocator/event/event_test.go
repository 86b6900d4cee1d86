package event_test

import (
	"slices"
	"testing"

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

func TestEachObserverIsToldInItsTurn(t *testing.T) {
	var heard []string
	event.Observers{hears{"log", &heard}, hears{"metrics", &heard}}.Tell(event.Taken{ID: 3})
	if want := []string{"log", "metrics"}; !slices.Equal(heard, want) {
		t.Errorf("%v were told, want %v", heard, want)
	}
}
