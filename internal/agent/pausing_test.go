package agent

import (
	"errors"
	"testing"

	"github.com/idalloc/idalloc/internal/serve"
)

func TestOnlyTheLastWishToPauseCounts(t *testing.T) {
	for _, wishes := range [][]bool{{true}, {true, false}, {false, true, true}, {true, true, false}} {
		saved := false
		p := newPausing(func(paused bool) error { saved = paused; return nil })
		for _, wish := range wishes {
			if err := p.pause(wish); err != nil || saved != wish {
				t.Errorf("saved %t, %v", saved, err)
			}
		}
		p.save = func(bool) error { return errHook }
		if err := p.pause(!wishes[len(wishes)-1]); !errors.Is(err, errHook) {
			t.Errorf("it will not be known, and it pauses: %v", err)
		}
		if got := <-p.wishes; got != wishes[len(wishes)-1] || len(p.wishes) > 0 {
			t.Errorf("after %v the pod pauses: %t", wishes, got)
		}
	}
}

// A pause is the pod's, and not the container's.
func TestAPauseOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	begin := func() *watchWork {
		b, _ := beginning(t, dir)
		b.pausedBy(serve.NewServer(":0", b.hub, nil))
		return b
	}
	b := begin()
	for _, paused := range []bool{true, false} {
		if b.o.Allocator.Paused == paused {
			t.Errorf("it begins with paused %t", !paused)
		}
		must(t, b.pausing.pause(paused))
		b = begin()
	}
	if b.o.Allocator.Paused {
		t.Error("the pause has ended, and the next process pauses")
	}
}

// Without a UID, only the API server can tell that the pod which paused was an earlier one of the same name.
func TestAnotherPodsPauseIsNotThisOnes(t *testing.T) {
	dir := t.TempDir()
	b, _ := beginning(t, dir)
	b.pausedBy(serve.NewServer(":0", b.hub, nil))
	must(t, b.pausing.pause(true))
	o := optionsOf(dir)
	o.Allocator.PodUID = ""
	b = watcherOf(anAgent(t, o))
	b.pausedBy(serve.NewServer(":0", b.hub, nil))
	if !b.o.Allocator.Paused {
		t.Error("it may be this pod that was paused")
	}
	must(t, errors.Join(b.dir.adopt("uid-2"), b.begin()))
	if len(b.pausing.wishes) != 1 || <-b.pausing.wishes {
		t.Error("it stays paused")
	}
}
