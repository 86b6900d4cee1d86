package reconciler

import (
	"testing"
	"time"
)

func TestTheCountStandsStill(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var c counted
	for _, tc := range []struct {
		name             string
		at, count, after int
		settled          int
	}{
		{"the controller starts", 0, 3, 30, 30},
		{"nothing changes", 20, 3, 30, 30},
		{"the count changes much later", 100, 5, 30, 130},
		{"and again", 115, 6, 30, 145},
		{"and back", 130, 5, 30, 160},
		{"the user wants it sooner", 140, 5, 5, 135},
		{"it changes again after that", 200, 6, 30, 230},
		{"it changes all the time", 215, 7, 30, 245},
		{"for minutes", 490, 8, 30, 500},
		{"the last pods have had their turns", 510, 9, 30, 540},
	} {
		got := c.settles(tc.count, time.Duration(tc.after)*time.Second, at(tc.at))
		if !got.Equal(at(tc.settled)) {
			t.Errorf("%s: settled after %s", tc.name, got.Sub(start))
		}
		if tc.at == 215 { // in between
			for s := 230; s < 490; s += 15 {
				c.settles(s, 30*time.Second, at(s))
			}
		}
	}
}
