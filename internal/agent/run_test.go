//go:build unix

package agent

import (
	"testing"
	"time"
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
