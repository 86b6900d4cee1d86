package reconciler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// settleMost bounds a pod's wait for a stable count, as a multiple of the user's time, if the count never stops changing.
const settleMost = 10

// counted records the owner's count, since when it has had it, and since when each pod's containers have had another one.
type counted struct {
	count  int
	since  time.Time
	behind map[string]otherCount
}

// otherCount is the count with which a pod's containers started, and since when the owner has had another one.
type otherCount struct {
	started string
	since   time.Time
}

// settles returns when the count has been stable for the time after.
func (c *counted) settles(count int, after time.Duration, now time.Time) time.Time {
	if c.since.IsZero() || count != c.count {
		c.count, c.since = count, now
	}
	return c.since.Add(after)
}

// bound sets until when each pod waits for a stable count at the latest.
func (c *counted) bound(pods []decision.Pod, after time.Duration, now time.Time) {
	was, present := c.behind, strconv.Itoa(c.count)
	c.behind = nil
	for i := range pods {
		p := &pods[i]
		b, known := was[p.Name]
		if known = known && b.started == p.StartCount; !known {
			b = otherCount{p.StartCount, now}
		}
		returned := p.StartCount == present && (!known || !c.since.Add(after).After(now)) // a short return is one more change
		if p.StartCount == "" || returned || p.OnCount != assignment.OnCountRestart && p.OnCount != assignment.OnCountReplace {
			continue
		}
		if c.behind == nil {
			c.behind = map[string]otherCount{}
		}
		c.behind[p.Name] = b
		p.SettledAt = b.since.Add(settleMost * after)
	}
}

// tellCount writes an Event about pods that have waited too long to start with the present count.
func (p *pass) tellCount(ctx context.Context, behind []decision.Behind) {
	first, pods, since := map[decision.Stage]string{}, map[decision.Stage]int{}, map[decision.Stage]time.Time{}
	for _, b := range behind {
		if pods[b.Stage]++; first[b.Stage] == "" || b.SettledAt.Before(since[b.Stage]) {
			first[b.Stage], since[b.Stage] = b.Pod, b.SettledAt
		}
	}
	if !p.ref.Is(kinds.StatefulSet) { // the Events of its own rolling update are enough
		pods[decision.StageRollout] = 0
	}
	for stage, what := range map[decision.Stage]string{
		decision.StageStarting: "its turn to restart has not ended, because it is not available or has not restarted: see why, or set the count back",
		decision.StageQueued:   "it waits until more pods are available: see why others are not, or raise annotation " + assignment.TurnsKey,
		decision.StageRollout:  "it is of an older revision: see why the rolling update does not replace it, or, with updateStrategy OnDelete, delete it",
		decision.StagePaused:   "the Deployment is paused: resume it",
		decision.StageNever:    "idalloc-controller evicts no pods of a " + p.ref.Kind + ": set annotation " + assignment.OnCountKey + " to " + assignment.OnCountRestart + " or " + assignment.OnCountKeep,
	} {
		if pods[stage] == 0 {
			continue
		}
		if left := since[stage].Add(starts).Sub(p.world.Now); left > 0 {
			p.requeue(left)
		} else {
			// Event: a minute after the count became stable, some pods have not started with it.
			// Do: what the message says.
			p.warn(ctx, p.owner.About(), "CountWaits", string(stage), fmt.Sprintf("%d pods started with another count, such as %s: %s", pods[stage], first[stage], what))
		}
	}
}
