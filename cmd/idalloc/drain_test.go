package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/identity"
)

// pastChecks is in the error of what comes after the checks of the hooks' flags.
const pastChecks = "--log-format"

// parse returns what watch makes of a command line, up to the checks of its flags.
func parse(args ...string) error {
	root := newRoot()
	root.SetArgs(append([]string{"watch", "--pod-name", "", pastChecks, "none"}, args...))
	return root.Execute()
}

func TestHookFlagsAreChecked(t *testing.T) {
	for line, want := range map[string]string{
		"--drain=exec":                                    "use http, or --drain-exec",
		"--drain=http --drain-exec=/stop":                 "choose one",
		"--drain=http --http-address=":                    "needs an --http-address",
		"--drain=http --drain-timeout=-1s":                "or 0 to wait for ever",
		"--drain=http --drain-timeout-action=x":           "use keep or give",
		"--drain-exec='":                                  "is not closed",
		"--fence-after=30s":                               "watch by itself cannot",
		"--fence-exec=/kill":                              "set both",
		"--fence-after=2s --fence-exec=/kill":             "use 3s to",
		"--fence-after=-5s --fence-exec=/kill":            "use 3s to",
		"--fence-after=30s --fence-exec=\"/kill":          "is not closed",
		"--fence-after=30s --fence-exec=sh --timeout=43s": "use --timeout 44s or more, or 0",
		"--fence-after=3s --fence-exec=sh --timeout=1s":   "use --timeout 16s or more",
		"--fence-after=30s --fence-exec=sh --timeout=44s": pastChecks,
		"--fence-after=30s --fence-exec=sh --timeout=0":   pastChecks,
		"--timeout=1s":                                    pastChecks,
		"--drain=http":                                    pastChecks,
		"--drain-exec=/bin/sh --drain-timeout=0":          pastChecks,
		"--fence-after=3s --fence-exec=/bin/sh":           pastChecks,
		"--drain-timeout-action=give --drain-exec=sh":     pastChecks,
		"--drain=http --fence-after=9s --fence-exec=sh":   pastChecks,
		"--drain-exec=/no/such/stop":                      "no shell and no programs",
		"--fence-after=3s --fence-exec=no-such-kill":      "no shell and no programs",
		"--drain-exec=/etc":                               "no shell and no programs",
	} {
		err := parse(strings.Fields(line)...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("watch %s: %v, want a usage error with %q", line, err, want)
		}
	}
}

func TestInitRefusesStrictMode(t *testing.T) {
	refused := func(args ...string) {
		t.Helper()
		root := newRoot()
		root.SetArgs(append([]string{"init"}, args...))
		err := root.Execute()
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "cannot expire") {
			t.Errorf("init %v: %v", args, err)
		}
	}
	refused("--fence-after=30s")
	t.Setenv("IDALLOC_FENCE_AFTER", "30s")
	refused()
}

func held() identity.Identity {
	return identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Epoch: 7, Pod: "worker-0", Namespace: "shop"}
}

var errHook = errors.New("exit status 1")

// newDrainer returns a drainer whose hook is ask.
func newDrainer(action string, ask func(context.Context, identity.Identity) error) (d *drainer, logged *[]string) {
	logged = &[]string{}
	log := funcr.New(func(_, args string) { *logged = append(*logged, args) }, funcr.Options{})
	return &drainer{
		drainFlags: drainFlags{timeout: 5 * time.Minute, action: action}, log: log, ask: ask,
		givenUp: func() (identity.Identity, bool) { return held(), true }, done: func(identity.Identity) error { return nil },
	}, logged
}

// never is a hook that does not come to an end.
func never(ctx context.Context, _ identity.Identity) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestTheHookDecides(t *testing.T) {
	for _, want := range []error{nil, errHook} {
		d, logged := newDrainer(actionGive, func(_ context.Context, id identity.Identity) error {
			if id != held() {
				t.Errorf("asked about %v", id)
			}
			return want
		})
		if err := d.stopped(t.Context()); !errors.Is(err, want) || len(*logged) > 0 {
			t.Errorf("stopped is %v, want %v; the log has %v", err, want, *logged)
		}
	}
}

func TestNobodyIsAskedAboutAnIDThatNobodyWasToldOf(t *testing.T) {
	d, _ := newDrainer(actionKeep, func(context.Context, identity.Identity) error {
		t.Error("asked")
		return errHook
	})
	d.givenUp = func() (identity.Identity, bool) { return identity.Identity{}, false }
	if err := d.stopped(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAtTheTimeoutTheSlotIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := newDrainer(actionKeep, never)
		begin := time.Now()
		err := d.stopped(t.Context())
		if !errors.Is(err, errDrainTimeout) || time.Since(begin) != 5*time.Minute {
			t.Errorf("stopped is %v after %s", err, time.Since(begin))
		}
	})
}

func TestAtTheTimeoutTheSlotIsGivenIfSoWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, logged := newDrainer(actionGive, never)
		begin := time.Now()
		err := d.stopped(t.Context())
		if err != nil || time.Since(begin) != 5*time.Minute || len(*logged) != 1 {
			t.Errorf("stopped is %v after %s; the log has %v", err, time.Since(begin), *logged)
		}
	})
}

func TestACauseThatGoesAwayIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, logged := newDrainer(actionGive, never)
		d.timeout = 0
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1000*time.Hour, cancel)
		if err := d.stopped(ctx); !errors.Is(err, context.Canceled) || len(*logged) > 0 {
			t.Errorf("stopped is %v; the log has %v", err, *logged)
		}
	})
}

// telling is an announcer for a directory, as a process of worker-0 makes it.
func telling(t *testing.T, dir string) (a *announcer, left bool) {
	t.Helper()
	s, first := open(t, dir, "worker-0", "uid-1")
	if err := s.claim("uid-1"); err != nil {
		t.Fatal(err)
	}
	a = &announcer{shelf: s, hub: publish.NewHub(first), fenced: func() bool { return false }, fail: func(err error) { t.Error(err) }}
	left, err := a.recall()
	if err != nil {
		t.Fatal(err)
	}
	return a, left
}

func withdrawn(state identity.State) identity.Identity { return held().Without(state) }

func TestTheGateIsOpenWhileDraining(t *testing.T) {
	a, left := telling(t, t.TempDir())
	if left {
		t.Error("an empty directory has an id to give up")
	}
	for _, id := range []identity.Identity{withdrawn(identity.StatePending), held(), withdrawn(identity.StateLost)} {
		a.publish(id)
		if err := a.gate.Drained(0); !errors.Is(err, hook.ErrNothingToDrain) {
			t.Errorf("%s: a word was taken: %v", id, err)
		}
	}
	a.publish(held())
	a.publish(withdrawn(identity.StateDraining))
	if err := a.gate.Drained(8); !errors.Is(err, hook.ErrNothingToDrain) {
		t.Errorf("a word for another epoch was taken: %v", err)
	}
	if err := a.gate.Drained(7); err != nil {
		t.Error(err)
	}
	if id, told := a.givenUp(); !told || id != held() {
		t.Errorf("given up is %v, %t", id, told)
	}
	a.publish(held())
	if err := a.gate.Drained(7); !errors.Is(err, hook.ErrNothingToDrain) {
		t.Errorf("the id is in use again and a word was taken: %v", err)
	}
}

func TestARestartKnowsWhatIsBeingGivenUp(t *testing.T) {
	for _, states := range [][]identity.State{
		{identity.StateAssigned},
		{identity.StateAssigned, identity.StateDraining},
		{identity.StateAssigned, identity.StateFenced},
		{identity.StateAssigned, identity.StateDraining, identity.StateFenced},
		{identity.StateAssigned, identity.StateLost},
		{identity.StateAssigned, identity.StateLost, identity.StatePending, identity.StateDraining},
	} {
		dir := t.TempDir()
		a, _ := telling(t, dir)
		for _, state := range states {
			a.publish(identityIn(state))
		}
		for range 2 { // and a restart after the restart
			a, left := telling(t, dir)
			a.publish(withdrawn(identity.StateDraining))
			if id, told := a.givenUp(); !left || !told || id != held() {
				t.Errorf("after %v and a restart %v is given up, %t", states, id, told)
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
		a, _ := telling(t, dir)
		for _, state := range states {
			a.publish(identityIn(state))
		}
		if a, left := telling(t, dir); left || a.told.Assigned() {
			t.Errorf("after %v and a restart %v is given up", states, a.told)
		}
	}
}

func TestAWorkloadThatStoppedIsNotAskedAgain(t *testing.T) {
	dir := t.TempDir()
	a, _ := telling(t, dir)
	a.publish(held())
	a.publish(withdrawn(identity.StateDraining))
	if err := a.stopped(held()); err != nil {
		t.Fatal(err)
	}
	if id, told := a.givenUp(); told {
		t.Errorf("the workload is asked about %v again", id)
	}
	if a, left := telling(t, dir); left || a.told.Assigned() {
		t.Errorf("after a restart the workload is asked about %v again", a.told)
	}
	a.publish(held()) // called off
	if err := a.stopped(held()); err != nil {
		t.Fatal(err)
	}
	if _, told := a.givenUp(); !told {
		t.Error("the workload was told of the id again, and is not asked about it")
	}
}

func identityIn(state identity.State) identity.Identity {
	if state == identity.StateAssigned {
		return held()
	}
	return withdrawn(state)
}

func TestAFencedIDIsNotPublished(t *testing.T) {
	dir := t.TempDir()
	a, _ := telling(t, dir)
	a.fenced = func() bool { return true }
	a.publish(held())
	if hasID(t, dir) || a.hub.Get().State != identity.StateFenced {
		t.Errorf("an id is published although it is fenced: %v", a.hub.Get())
	}
}

func TestFencingWithdrawsTheIDAndThenKillsTheWork(t *testing.T) {
	dir := t.TempDir()
	a, _ := telling(t, dir)
	var steps []string
	f := &fencer{log: logr.Discard(), lead: time.Minute, withdraw: a.withdraw, kill: func(ctx context.Context, id identity.Identity) error {
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
	}, killed: a.stopped}
	f.fence(t.Context())
	a.publish(held())
	f.fence(t.Context())
	f.fence(t.Context())
	if !slices.Equal(steps, []string{"kill", "kill"}) {
		t.Errorf("%v, want a kill until it succeeds: before there was an id there was no work, and afterwards none is left", steps)
	}
}
