package main

import (
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
)

// at is a moment, in seconds.
func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

func begins(seconds int, pod string) sighting {
	return sighting{at: at(seconds), pod: pod, started: true}
}
func stops(seconds int, pod string) sighting { return sighting{at: at(seconds), pod: pod} }
func ends(seconds int, pod string) sighting {
	return sighting{at: at(seconds), pod: pod, ended: true}
}

func says(seconds int, pod string, id, count int) sighting {
	return sighting{at: at(seconds), pod: pod, id: idalloc.Identity{State: identity.StateAssigned, ID: id, Count: count}}
}

// story is a with id 0 and b with id 1 of two; c follows a, which it found there, and d follows b, which
// was gone before.
func story() *history {
	return &history{seen: []sighting{
		begins(0, "a"), begins(0, "b"), says(1, "a", 0, 2), says(1, "b", 1, 2),
		begins(10, "c"), stops(12, "a"), ends(13, "a"), says(15, "c", 0, 2),
		stops(20, "b"), ends(21, "b"), begins(26, "d"), says(27, "d", 1, 2), says(30, "c", 0, 3), says(32, "d", 1, 3),
	}}
}

func TestAnIDWithoutAHolderIsWaitedForOnlyWhenTheNextOneRuns(t *testing.T) {
	gaps, waits := story().gaps(at(2))
	if want := []time.Duration{3 * time.Second, 7 * time.Second}; !slices.Equal(gaps, want) {
		t.Errorf("gaps are %v, want %v", gaps, want)
	}
	if want := []time.Duration{1 * time.Second, 3 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits are %v, want %v", waits, want)
	}
}

func TestWhatWasBeforeIsNoGap(t *testing.T) {
	if gaps, waits := story().gaps(at(28)); len(gaps)+len(waits) != 0 {
		t.Errorf("gaps are %v and %v", gaps, waits)
	}
}

func TestHoldersAreThoseThatStillHold(t *testing.T) {
	if got, want := story().holders(), []string{"c", "d"}; !slices.Equal(got, want) {
		t.Errorf("holders are %v, want %v", got, want)
	}
}

func TestACountIsPublishedOnceByEachPod(t *testing.T) {
	times, missing := story().published([]string{"a", "c", "d"}, 3, at(29))
	if want := []time.Duration{1 * time.Second, 3 * time.Second}; !slices.Equal(times, want) || missing != 0 {
		t.Errorf("published after %v, %d missing, want %v", times, missing, want)
	}
	if _, missing := story().published([]string{"c", "d"}, 4, at(29)); missing != 2 {
		t.Errorf("%d missing of a count that nobody published", missing)
	}
}

func TestTheFirstToTakeHadNoneBefore(t *testing.T) {
	if got := story().firstTaken(at(14)); !got.Equal(at(15)) {
		t.Errorf("first taken at %v", got)
	}
	if got := story().firstTaken(at(16)); !got.Equal(at(27)) {
		t.Errorf("first taken at %v", got)
	}
}

func TestTheServersMetricsAreAddedUp(t *testing.T) {
	got, err := parseServer(`# HELP process_cpu_seconds_total CPU
process_cpu_seconds_total 1.5
apiserver_response_sizes_sum{verb="GET",resource="pods"} 100
apiserver_response_sizes_sum{verb="LIST",resource="pods"} 1e+03
apiserver_response_sizes_count{verb="LIST",resource="pods"} 7
apiserver_watch_events_sizes_sum{group="apps",resource="deployments",version="v1"} 20
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 3
apiserver_request_body_size_bytes_sum{group="",resource="pods",verb="patch"} 5
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (server{cpu: 1.5, answers: 1100, events: 23, ownerEvents: 20, requests: 5}); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if _, err := parseServer("up 1\n"); err == nil {
		t.Error("metrics without the CPU time were read")
	}
}

func TestAListOfNamesIsChosenFrom(t *testing.T) {
	chosen, err := choose("-protocol", "floor,idalloc", protocols(), protocol.name)
	if err != nil || list(chosen, protocol.name) != "floor,idalloc" {
		t.Errorf("chose %v: %v", list(chosen, protocol.name), err)
	}
	if _, err := choose("-protocol", "floor,flor", protocols(), protocol.name); err == nil {
		t.Error("chose what is not there")
	}
}

func TestATableOfADocumentHasTheColumnsThatItNames(t *testing.T) {
	got := markdown([][]string{{"N", "protocol", "total s"}, {"10", "a|b", "0.5"}}, []string{"protocol", "total s"})
	if want := "| protocol | total s |\n| --- | --- |\n| a\\|b | 0.5 |\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestTheTablesOfClaimsNameColumnsThatThereAre(t *testing.T) {
	header := claimLines(nil)[0]
	for _, columns := range claimTables() {
		for _, title := range columns {
			if !slices.Contains(header, title) {
				t.Errorf("there is no column %q", title)
			}
		}
	}
}
