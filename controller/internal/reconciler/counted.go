package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// settleMost bounds the wait for a stable count, as a multiple of the user's time, if the count never stops changing.
const settleMost = 10

// counted records the owner's count, since when it has had it (since), and when the present series of changes began (first).
type counted struct {
	count        int
	since, first time.Time
	settled      time.Time
}

// settles returns when the count has been stable for the time after. If it changes all the time, that is ten times as long after the first change.
func (c *counted) settles(count int, after time.Duration, now time.Time) time.Time {
	if c.since.IsZero() || count != c.count {
		if c.since.IsZero() || !c.settled.After(now) {
			c.first = now
		}
		c.count, c.since = count, now
	}
	c.settled = c.since.Add(after)
	if last := c.first.Add(settleMost * after); last.Before(c.settled) {
		c.settled = last
	}
	return c.settled
}

// tellCount writes an Event about pods that have waited too long to start with the present count.
func (p *pass) tellCount(ctx context.Context, behind []decision.Behind) {
	first, pods := map[decision.Stage]string{}, map[decision.Stage]int{}
	for _, b := range behind {
		if pods[b.Stage]++; first[b.Stage] == "" {
			first[b.Stage] = b.Pod
		}
	}
	for stage, what := range map[decision.Stage]string{
		decision.StageStarting: "its turn to restart has not ended, because it is not available or has not restarted: see why, or set the count back",
		decision.StageQueued:   "it waits until more pods are available: see why others are not, or raise annotation " + assignment.TurnsKey,
		decision.StagePaused:   "the Deployment is paused: resume it",
		decision.StageNever:    "idalloc-controller evicts no pods of a " + p.ref.Kind + ": set annotation " + assignment.OnCountKey + " to " + assignment.OnCountRestart + " or " + assignment.OnCountKeep,
	} {
		if pods[stage] == 0 {
			continue
		}
		if left := p.world.SettledAt.Add(starts).Sub(p.world.Now); left > 0 {
			p.requeue(left)
		} else {
			// Event: a minute after the count became stable, some pods have not started with it.
			// Do: what the message says.
			p.warn(ctx, p.owner.About(), "CountWaits", string(stage), fmt.Sprintf("%d pods started with another count, such as %s: %s", pods[stage], first[stage], what))
		}
	}
}
