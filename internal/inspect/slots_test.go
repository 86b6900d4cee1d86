package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// tableOf returns the rows of the view's table, cell by cell.
func tableOf(t *testing.T, v View, now time.Time) [][]string {
	t.Helper()
	var b strings.Builder
	if err := v.Table(&b, now, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	rows := make([][]string, 0, len(lines))
	for _, line := range lines {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func TestAgeIsThatOfTheHolding(t *testing.T) {
	n := settledPods(2)
	now := time.UnixMilli(1_795_219_200_000)
	n.lock("a", 0, now.Add(-time.Minute).UnixMilli())
	n.edit("a", func(p *pod) { p.Created = now.Add(-time.Hour) })
	n.edit("b", func(p *pod) { p.Receipt = nil })
	rows := tableOf(t, n.view(), now)
	if got := []string{rows[0][5], rows[1][5]}; !slices.Equal(got, []string{"60s", "-"}) {
		t.Errorf("ages %q", got)
	}
}

func TestARowThatIsToMoveIsMarked(t *testing.T) {
	n := settledPods(3)
	n.owner.Count = 1
	n.edit("c", func(p *pod) { p.Terminating = true })
	rows := tableOf(t, n.view(), time.Time{})
	states := make([]string, 0, len(rows))
	for _, row := range rows {
		states = append(states, row[4])
	}
	if want := []string{"held", "moving", "held"}; !slices.Equal(states, want) {
		t.Errorf("states %q, want %q: the last pod is Terminating and moves nowhere", states, want)
	}
}

func TestAFinishedJobShowsNoDeadRow(t *testing.T) {
	n := settledPods(3)
	n.edit("a", func(p *pod) { p.phase = "Succeeded" })
	n.free(1)
	if v := n.view(); len(v.Slots) != 3 || v.Slots[0].State != Dead || v.Slots[1].State != Free {
		t.Errorf("while it runs: %+v", v.Slots)
	}
	n.rollout.finished = true
	if v := n.view(); !v.Finished || len(v.Slots) != 1 || v.Slots[0].Pod != "c" {
		t.Errorf("%+v", v.Slots)
	}
}
