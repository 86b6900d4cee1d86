//go:build unix

package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/pkg/identity"
)

// A fenced command is dead before another pod may get its id.
func TestFencedIsDeadInTime(t *testing.T) {
	for _, tc := range []struct{ stopTimeout, fenceAfter time.Duration }{
		{10 * time.Second, 30 * time.Second},
		{10 * time.Second, 3 * time.Second},
		{time.Second, time.Minute},
		{0, 3 * time.Second},
		{time.Hour, time.Hour},
	} {
		c := Command{StopTimeout: tc.stopTimeout}
		lead, grace := c.fenceLead(tc.fenceAfter), c.fenceGrace(tc.fenceAfter)
		if lead > tc.fenceAfter/2 || grace >= lead || grace > tc.stopTimeout || lead-grace < minFenceLead/4 {
			t.Errorf("%s, %s: lead %s, grace %s", tc.stopTimeout, tc.fenceAfter, lead, grace)
		}
	}
}

// running starts a process of worker-0 that runs a command and shows its identities in a directory.
func running(t *testing.T, dir string, fenceAfter time.Duration) *runWork {
	t.Helper()
	o := optionsOf(dir)
	o.FenceAfter = fenceAfter
	a := anAgent(t, o)
	must(t, a.dir.adopt(podUID))
	c := &runWork{agent: a, follower: child.NewFollower(child.Options{Log: logr.Discard()})}
	a.work = c
	c.begin()
	return c
}

// After a crash the command does not run. The files keep the id that other containers may work under, unless strict mode says that
// a process must watch the time.
func TestAProcessThatIsStartedAgainShowsNoIDThatNoProcessWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		fenceAfter time.Duration
		inFiles    bool
	}{"default mode": {0, true}, "strict mode": {30 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			running(t, dir, tc.fenceAfter).publish(held())
			again := running(t, dir, tc.fenceAfter)
			if now := again.hub.Get().Identity; now.Assigned() {
				t.Errorf("HTTP says %s, and no command runs", now)
			}
			if there, err := identity.Read(dir); err != nil || there.Assigned() != tc.inFiles {
				t.Errorf("the files say %s (%v)", there, err)
			}
		})
	}
}

// A slot may be taken before anything is published. It must be released all the same when the process ends then.
func TestAProcessThatEndsEarlyWithdrawsFromTheFiles(t *testing.T) {
	for name, left := range map[string]identity.Identity{"nothing left": {}, "an id left": held(), "none left": withdrawn(identity.StateDraining)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if left.State != "" {
				running(t, dir, 0).publish(left)
			}
			if err := running(t, dir, 0).stopShowing(t.Context()); err != nil {
				t.Errorf("the slot is kept: %v", err)
			}
			if there, err := identity.Read(dir); err != nil || there.Assigned() {
				t.Errorf("the files say %s (%v)", there, err)
			}
		})
	}
}

// Kubernetes kills the container soon after a signal. Without one nothing presses, and the id has no worker before it is released.
func TestTheReleaseHasMoreTimeWithoutASignal(t *testing.T) {
	for name, tc := range map[string]struct{ signal, want time.Duration }{
		"no signal": {time.Hour, 2 * time.Minute}, "a signal before": {0, 10 * time.Second},
		"a signal meanwhile": {time.Minute, 70 * time.Second}, "a signal near the end": {115 * time.Second, 125 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				signalled, signal := context.WithCancel(t.Context())
				defer time.AfterFunc(tc.signal, signal).Stop()
				limited, cancel := releaseContext(signalled)
				defer cancel()
				<-limited.Done()
				if took := time.Since(begin); took != tc.want || !errors.Is(context.Cause(limited), context.DeadlineExceeded) {
					t.Errorf("it ends after %s with %v, want %s", took, context.Cause(limited), tc.want)
				}
			})
		})
	}
}
