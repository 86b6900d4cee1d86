package agent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// The pod of most tests.
const (
	podName = "worker-0"
	podUID  = "uid-1"
)

func held() identity.Identity {
	return identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 7, Pod: podName, Namespace: "shop"}
}

var errHook = errors.New("exit status 1")

// newDrainer returns a drainer whose hook is ask.
func newDrainer(giveAtTimeout bool, ask func(context.Context, identity.Identity, allocator.Stop) error) (d *drainer, logged *[]string) {
	logged = &[]string{}
	log := funcr.New(func(_, args string) { *logged = append(*logged, args) }, funcr.Options{})
	b := &watchWork{agent: &agent{o: Options{Allocator: allocator.Options{Log: log}}}, last: held()}
	return &drainer{watchWork: b, timeout: 5 * time.Minute, giveAtTimeout: giveAtTimeout, ask: ask}, logged
}

// never is a hook that does not return before its context ends.
func never(ctx context.Context, _ identity.Identity, _ allocator.Stop) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestTheHookDecides(t *testing.T) {
	for _, want := range []error{nil, errHook} {
		d, logged := newDrainer(true, func(_ context.Context, id identity.Identity, _ allocator.Stop) error {
			if id != held() {
				t.Errorf("asked about %v", id)
			}
			return want
		})
		if err := d.stop(t.Context(), allocator.Stop{All: true}); !errors.Is(err, want) || len(*logged) > 0 {
			t.Errorf("stop is %v, want %v; the log has %v", err, want, *logged)
		}
	}
}

func TestNoHookIsAskedAboutAnIDThatWasNeverShown(t *testing.T) {
	d, _ := newDrainer(false, func(context.Context, identity.Identity, allocator.Stop) error {
		t.Error("asked")
		return errHook
	})
	d.last = identity.Identity{}
	must(t, d.stop(t.Context(), allocator.Stop{All: true}))
}

func TestACauseThatGoesAwayIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, logged := newDrainer(true, never)
		d.timeout = 0
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1000*time.Hour, cancel)
		if err := d.stop(ctx, allocator.Stop{All: true}); !errors.Is(err, context.Canceled) || len(*logged) > 0 {
			t.Errorf("stop is %v; the log has %v", err, *logged)
		}
	})
}

// beginning starts a process of worker-0 that shows its identities in a directory.
func beginning(t *testing.T, dir string) (b *watchWork, left bool) {
	t.Helper()
	return beginningOf(t, dir, podUID, podUID)
}

// beginningOf starts a process of a pod that is told one UID, perhaps none, and hears another one from the API server.
func beginningOf(t *testing.T, dir string, told types.UID, heard string) (b *watchWork, left bool) {
	t.Helper()
	o := optionsOf(dir)
	o.Allocator.PodUID = told
	b = watcherOf(anAgent(t, o))
	left, err := b.recall()
	must(t, err, b.dir.adopt(heard), b.begin())
	return b, left
}

// optionsOf are those of worker-0 with a directory.
func optionsOf(dir string) Options {
	return Options{Dir: dir, Allocator: allocator.Options{Pod: podName, Namespace: "shop", PodUID: podUID, Log: logr.Discard()}}
}

// anAgent is one that does not fail.
func anAgent(t *testing.T, o Options) *agent {
	t.Helper()
	a, err := newAgent(o, func(err error) { t.Error(err) })
	must(t, err)
	return a
}

func watcherOf(a *agent) *watchWork {
	b := &watchWork{agent: a}
	a.work = b
	return b
}

func withdrawn(state identity.State) identity.Identity { return held().Without(state) }

func TestTheGateIsOpenWhileDraining(t *testing.T) {
	a, left := beginning(t, t.TempDir())
	if left {
		t.Error("an empty directory has an id to withdraw")
	}
	for _, id := range []identity.Identity{withdrawn(identity.StatePending), held(), withdrawn(identity.StateLost)} {
		a.publish(id)
		if err := a.gate.Drained(0, 0); !errors.Is(err, hook.ErrNothingToDrain) {
			t.Errorf("%s: a word was taken: %v", id, err)
		}
	}
	a.publish(held())
	a.publish(withdrawn(identity.StateDraining))
	if err := a.gate.Drained(8, 0); !errors.Is(err, hook.ErrNothingToDrain) {
		t.Errorf("a word for another token was taken: %v", err)
	}
	must(t, a.gate.Drained(7, 0))
	if id, told := a.mayWork(); !told || id != held() {
		t.Errorf("withdrawn is %v, %t", id, told)
	}
	a.publish(held())
	if err := a.gate.Drained(7, 0); !errors.Is(err, hook.ErrNothingToDrain) {
		t.Errorf("the id is in use again and a word was taken: %v", err)
	}
}

func TestARestartKnowsWhichIDWasWithdrawn(t *testing.T) {
	for _, states := range [][]identity.State{
		{identity.StateAssigned},
		{identity.StateAssigned, identity.StateDraining},
		{identity.StateAssigned, identity.StateFenced},
		{identity.StateAssigned, identity.StateDraining, identity.StateFenced},
		{identity.StateAssigned, identity.StateLost},
		{identity.StateAssigned, identity.StateLost, identity.StatePending, identity.StateDraining},
	} {
		dir := t.TempDir()
		a, _ := beginning(t, dir)
		for _, state := range states {
			a.publish(identityIn(state))
		}
		for range 2 { // and a restart after the restart
			a, left := beginning(t, dir)
			a.publish(withdrawn(identity.StateDraining))
			if id, told := a.mayWork(); !left || !told || id != held() {
				t.Errorf("after %v and a restart %v is withdrawn, %t", states, id, told)
			}
		}
	}
}

func TestWithoutAUIDAnEarlierPodsWorkIsForgottenAndThisPodsIsNot(t *testing.T) {
	for _, states := range [][]identity.State{{identity.StateAssigned}, {identity.StateAssigned, identity.StateDraining}} {
		for _, uid := range []string{podUID, "uid-2"} {
			dir := t.TempDir()
			a, _ := beginning(t, dir)
			for _, state := range states {
				a.publish(identityIn(state))
			}
			for range 2 { // and a restart before there is an id
				a, _ := beginningOf(t, dir, "", uid)
				if id, told := a.mayWork(); told != (uid == podUID) {
					t.Errorf("pod %s takes what pod %s left after %v for its own: %t, %v", uid, podUID, states, told, id)
				}
				a.publish(withdrawn(identity.StatePending))
			}
		}
	}
}

func TestARestartDoesNotAskAboutAnIDThatIsGone(t *testing.T) {
	for _, states := range [][]identity.State{
		{identity.StatePending},
		{identity.StateAssigned, identity.StateReleased},
	} {
		dir := t.TempDir()
		a, _ := beginning(t, dir)
		for _, state := range states {
			a.publish(identityIn(state))
		}
		if a, left := beginning(t, dir); left || a.last.Assigned() {
			t.Errorf("after %v and a restart %v is withdrawn", states, a.last)
		}
	}
}

func TestAProgramThatStoppedIsNotAskedAgain(t *testing.T) {
	dir := t.TempDir()
	a, _ := beginning(t, dir)
	a.publish(held())
	a.publish(withdrawn(identity.StateDraining))
	must(t, a.stopped(held()))
	if id, told := a.mayWork(); told {
		t.Errorf("the program is asked about %v again", id)
	}
	if a, left := beginning(t, dir); left || a.last.Assigned() {
		t.Errorf("after a restart the program is asked about %v again", a.last)
	}
	a.publish(held()) // called off
	must(t, a.stopped(held()))
	if _, told := a.mayWork(); !told {
		t.Error("the program was told of the id again, and is not asked about it")
	}
}

func identityIn(state identity.State) identity.Identity {
	if state == identity.StateAssigned {
		return held()
	}
	return withdrawn(state)
}

func TestAnIDIsWithdrawnAtOnceAndOnce(t *testing.T) {
	dir := t.TempDir()
	a, _ := beginning(t, dir)
	a.publish(held())
	a.showFenced()
	if got := a.hub.Get(); hasID(t, dir) || got.State != identity.StateFenced || got.Count != 5 {
		t.Errorf("after it was withdrawn %+v is answered", got)
	}
	a.publish(withdrawn(identity.StateLost))
	a.showFenced()
	if got := a.hub.Get().State; got != identity.StateLost {
		t.Errorf("where no id is shown, the state becomes %s", got)
	}
}

func TestFencingWithdrawsTheIDAndThenKillsTheWork(t *testing.T) {
	dir := t.TempDir()
	a, _ := beginning(t, dir)
	var steps []string
	f := &fencer{watchWork: a, lead: time.Minute, kill: func(ctx context.Context, id identity.Identity) error {
		if id != held() || hasID(t, dir) || a.hub.Get().State != identity.StateFenced {
			t.Errorf("killing the work under %v; HTTP says %v", id, a.hub.Get())
		}
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the kill may take for ever")
		}
		steps = append(steps, "kill")
		if len(steps) == 1 {
			return errHook
		}
		return nil
	}}
	f.fence(t.Context())
	a.publish(held())
	f.fence(t.Context())
	f.fence(t.Context())
	if !slices.Equal(steps, []string{"kill", "kill"}) {
		t.Errorf("%v, want a kill until it succeeds: before there was an id there was no work, and afterwards none is left", steps)
	}
}

// The loop and the goroutine that watches the time may both find it over.
func TestFencingHoldsNothingUpAndKillsOnceAtATime(t *testing.T) {
	a, _ := beginning(t, t.TempDir())
	a.publish(held())
	kills, end := make(chan struct{}, 9), make(chan struct{})
	f := &fencer{watchWork: a, lead: time.Minute, kill: func(context.Context, identity.Identity) error {
		kills <- struct{}{}
		<-end
		return nil
	}}
	f.begin(t.Context())
	f.begin(t.Context())
	if got := a.hub.Get().State; got != identity.StateFenced {
		t.Errorf("while the work is killed, the state is %s", got)
	}
	close(end)
	f.begun.Wait()
	if len(kills) != 1 {
		t.Errorf("the work was killed %d times", len(kills))
	}
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
