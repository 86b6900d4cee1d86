package hook

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	return ctx
}

func TestAClosedGateTakesNoWord(t *testing.T) {
	var g Gate
	for range 2 {
		if err := g.Drained(0, 0); !errors.Is(err, ErrNothingToDrain) {
			t.Errorf("a word while no id is withdrawn: %v", err)
		}
		for range 64 { // of a context that has ended and a report that counts, Wait takes either
			if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
				t.Fatalf("Wait is %v", err)
			}
		}
		g.Open(7, 1)
		must(t, g.Drained(7, 0))
		g.Close()
	}
}

func TestAWordEndsTheWait(t *testing.T) {
	var g Gate
	g.Open(7, 1)
	done := make(chan error, 1)
	go func() { done <- g.Wait(t.Context()) }()
	must(t, g.Drained(7, 0))
	must(t, <-done)
	g.Open(7, 1) // the same episode still
	if err := g.Wait(t.Context()); err != nil {
		t.Errorf("asked again in the same episode: %v", err)
	}
	if err := g.Drained(0, 0); err != nil {
		t.Errorf("said again: %v", err)
	}
}

func TestAWordOfAnEarlierEpisodeDoesNotCount(t *testing.T) {
	var g Gate
	g.Open(7, 1)
	must(t, g.Drained(7, 0))
	g.Close()
	if err := g.Drained(9, 0); !errors.Is(err, ErrNothingToDrain) || !strings.Contains(err.Error(), "no id is being withdrawn") {
		t.Errorf("between two episodes: %v", err)
	}
	g.Open(8, 1)
	if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
		t.Errorf("the word of the episode before ended the wait: %v", err)
	}
	if err := g.Drained(7, 0); !errors.Is(err, ErrNothingToDrain) {
		t.Errorf("a late word for token 7: %v", err)
	}
	for range 64 {
		if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
			t.Fatalf("the late word ended the wait: %v", err)
		}
	}
	must(t, g.Drained(8, 0))
}

func TestAnUnknownTokenTakesAnyWord(t *testing.T) {
	var g Gate
	g.Open(0, 1)
	must(t, g.Drained(9, 0))
}

// An id keeps its token when its drain is called off, so that a late report names the right one.
func TestALateReportForAnEarlierStopOfTheSameTokenDoesNotCount(t *testing.T) {
	var g Gate
	g.Open(7, 1)
	g.Close() // called off
	g.Open(7, 2)
	for _, stop := range []int{1, 3} {
		if err := g.Drained(7, stop); !errors.Is(err, ErrNothingToDrain) {
			t.Errorf("the report for stop %d: %v", stop, err)
		}
	}
	if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
		t.Errorf("Wait is %v", err)
	}
	must(t, g.Drained(7, 2))
	must(t, g.Wait(t.Context()))
}

// Nothing began between the two stops, so a report for the first one answers the second one, too.
func TestAProgramThatIsAskedAgainMayHaveReportedBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		opened []int
		report int
		counts bool
	}{
		"the number was not known yet":   {[]int{0, 2}, 2, true},
		"the first of two":               {[]int{2, 3}, 2, true},
		"the second of two":              {[]int{2, 3}, 3, true},
		"one before the first":           {[]int{2, 3}, 1, false},
		"one before, not known at first": {[]int{0, 2}, 1, false},
		"one that is not known":          {[]int{0}, 1, false},
		"one after the last":             {[]int{2, 3}, 4, false},
	} {
		var g Gate
		for _, number := range tc.opened {
			g.Open(7, number)
		}
		if err := g.Drained(7, tc.report); tc.counts != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
