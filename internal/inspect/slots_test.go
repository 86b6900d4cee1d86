package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// tableOf returns the rows of the view's table, cell by cell.
func tableOf(t *testing.T, v View, now time.Time) [][]string {
	t.Helper()
	var b strings.Builder
	if err := SlotColumns().Write(&b, v.Rows(now), false, true); err != nil {
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
	n.edit("a", func(p *pod) { p.Created, p.written = now.Add(-time.Hour), now.Add(-time.Minute) })
	n.unlock("b")
	rows := tableOf(t, n.view(), now)
	if got := []string{rows[0][5], rows[1][5]}; !slices.Equal(got, []string{"60s", "-"}) {
		t.Errorf("ages %q", got)
	}
}

func TestARowWhosePodIsAboutToLeaveIsMarked(t *testing.T) {
	n := settledPods(4)
	n.owner.Count = 2
	n.edit("b", func(p *pod) { p.Terminating = true })
	n.edit("d", func(p *pod) { p.Terminating = true })
	v := n.view()
	states := make([]string, 0, len(v.Slots))
	for _, row := range tableOf(t, v, time.Time{}) {
		states = append(states, row[4])
	}
	if want := []string{"held", "ending", "moving", "ending"}; !slices.Equal(states, want) {
		t.Errorf("states %q, want %q: the pods of 1 and 3 are Terminating and move nowhere", states, want)
	}
	if ending := v.Slots[1]; ending.State != Held || !ending.Terminating {
		t.Errorf("for programs it says %+v", ending)
	}
	n.owner.Record.State.Handover = map[int]string{1: "a"}
	if row := tableOf(t, n.view(), time.Time{})[1]; row[4] != "handover" {
		t.Errorf("a pod that is asked for its slot and ends: %q", row[4])
	}
}

// The next pod that plans takes the entry out.
func TestASlotThatItsPodGaveUpIsFree(t *testing.T) {
	n := settledPods(2)
	n.edit("b", func(p *pod) { p.Receipt = gaveUp(); p.Receipt.State = receipt.GaveUp })
	v := n.view()
	if slot := v.Slots[1]; slot.State != Free || slot.Pod != "" || !slices.Equal(v.Waiting, []string{"b"}) {
		t.Errorf("%+v, %v wait", slot, v.Waiting)
	}
	if r := reported(n); !r.OK || r.Held != 1 {
		t.Errorf("%+v", r)
	}
}

func TestASlotWithoutALockIsProposed(t *testing.T) {
	n := settledPods(2)
	n.unlock("b")
	if slot := n.view().Slots[1]; slot.State != Proposed || slot.Pod != "b" {
		t.Errorf("%+v", slot)
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
