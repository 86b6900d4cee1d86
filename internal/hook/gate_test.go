package hook

import (
	"context"
	"errors"
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
		if err := g.Drained(0); !errors.Is(err, ErrNothingToDrain) {
			t.Errorf("a word while no id is withdrawn: %v", err)
		}
		if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
			t.Errorf("Wait is %v", err)
		}
		g.Open(7)
		if err := g.Drained(7); err != nil {
			t.Error(err)
		}
		g.Close()
	}
}

func TestAWordEndsTheWait(t *testing.T) {
	var g Gate
	g.Open(7)
	done := make(chan error, 1)
	go func() { done <- g.Wait(t.Context()) }()
	if err := g.Drained(7); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	g.Open(7) // the same episode still
	if err := g.Drained(0); err != nil {
		t.Errorf("said again: %v", err)
	}
	if err := g.Wait(t.Context()); err != nil {
		t.Errorf("asked again in the same episode: %v", err)
	}
}

func TestAWordOfAnEarlierEpisodeDoesNotCount(t *testing.T) {
	var g Gate
	g.Open(7)
	if err := g.Drained(7); err != nil {
		t.Error(err)
	}
	g.Close()
	g.Open(8)
	if err := g.Wait(ended(t)); !errors.Is(err, errStop) {
		t.Errorf("the word of the episode before ended the wait: %v", err)
	}
	if err := g.Drained(7); !errors.Is(err, ErrNothingToDrain) {
		t.Errorf("a late word for epoch 7: %v", err)
	}
	if err := g.Drained(8); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownEpochTakesAnyWord(t *testing.T) {
	var g Gate
	g.Open(0)
	if err := g.Drained(9); err != nil {
		t.Error(err)
	}
}
