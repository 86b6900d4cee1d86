package hook

import (
	"context"
	"errors"
	"testing"

	"github.com/idalloc/idalloc/pkg/placement"
)

// waits returns what Wait says of the partitions once ctx has ended: whether they have been reported.
func waits(t *testing.T, p *Parts, set placement.Set) bool {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Wait(ctx, set, func(placement.Set) {}) }()
	p.mu.Lock()
	heard := set.Subset(p.heard)
	p.mu.Unlock()
	if !heard {
		cancel(errStop)
	}
	defer cancel(nil)
	err := <-done
	if err != nil && !errors.Is(err, errStop) {
		t.Errorf("Wait is %v", err)
	}
	return err == nil
}

func TestAReportAboutPartitionsEndsTheWaitForThem(t *testing.T) {
	var p Parts
	p.Show(placement.Between(12, 15), 3)
	done := make(chan error, 1)
	go func() { done <- p.Wait(t.Context(), placement.Between(12, 15), func(placement.Set) {}) }()
	for _, set := range []placement.Set{placement.Of(12), placement.Of(12), placement.Between(13, 15)} {
		if waits(t, &p, placement.Between(12, 15)) {
			t.Error("some of the partitions were enough")
		}
		must(t, p.Drained(set, 3))
	}
	must(t, <-done)
	if !waits(t, &p, placement.Of(12)) {
		t.Error("asked again, and it has been said")
	}
}

func TestAReportMustNameItsStop(t *testing.T) {
	var p Parts
	refused := func(set placement.Set, stop int) {
		t.Helper()
		if err := p.Drained(set, stop); !errors.Is(err, ErrNothingToDrain) {
			t.Errorf("stop %d of %s: %v", stop, set, err)
		}
		if waits(t, &p, set) {
			t.Errorf("stop %d of %s: it counts", stop, set)
		}
	}
	refused(placement.Of(12), 1) // nothing is to stop
	p.Show(placement.Of(12), 1)
	refused(placement.Of(12), 2)     // that stop was never heard of
	refused(placement.Of(12, 13), 1) // 13 is in use
	p.Show(placement.Set{}, 1)       // called off
	refused(placement.Of(12), 1)
	p.Show(placement.Of(12), 2)
	refused(placement.Of(12), 1) // late: the work has gone on meanwhile
	must(t, p.Drained(placement.Of(12), 2))
}

func TestAStopThatIsCalledOffForgetsItsReport(t *testing.T) {
	var p Parts
	p.Show(placement.Of(12, 13), 1)
	must(t, p.Drained(placement.Of(12, 13), 1))
	p.Show(placement.Of(13), 1) // 12 is in use again
	p.Show(placement.Of(12, 13), 2)
	if waits(t, &p, placement.Of(12)) {
		t.Error("a report from before the program worked on it again counts")
	}
	if !waits(t, &p, placement.Of(13)) {
		t.Error("13 has not been in use again, and its report is forgotten")
	}
}

// A program that has heard of the later of two stops has heard of both.
func TestAReportCountsForEarlierStopsThatAreStillUnderWay(t *testing.T) {
	var p Parts
	p.Show(placement.Of(12), 1)
	p.Show(placement.Of(12, 15), 2)
	if err := p.Drained(placement.Of(12, 15), 1); !errors.Is(err, ErrNothingToDrain) {
		t.Errorf("15 is to stop only since stop 2: %v", err)
	}
	must(t, p.Drained(placement.Of(12), 2))
	if !waits(t, &p, placement.Of(12)) || waits(t, &p, placement.Of(15)) {
		t.Error("the report is about 12")
	}
	must(t, p.Drained(placement.Of(12, 15), 2))
	if !waits(t, &p, placement.Of(12, 15)) {
		t.Error("both have been reported")
	}
}
