package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func at(d time.Duration) time.Time { return time.Unix(1_000_000, 0).Add(d) }

func TestAPartitionRestsFromTheLastWorkOfOneMemberToTheFirstOfAnother(t *testing.T) {
	b := newBook(2)
	for _, w := range []struct {
		partition int
		member    string
		at        time.Duration
	}{
		{0, "a", 0},
		{1, "a", 0},
		{0, "a", stall - 1}, // the usual pace
		{0, "b", stall},     // it moves at once
		{1, "a", 2 * stall}, // it has rested
		{1, "b", 5 * stall},
	} {
		b.worked(w.partition, w.member, at(w.at))
	}
	if got, want := b.take(), []gap{{true, 1}, {false, 2 * stall}, {true, 3 * stall}}; !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
	if again := b.take(); len(again) != 0 {
		t.Errorf("the gaps come again: %v", again)
	}
}

func TestAllIsSettledWhenTheMembersThatThereAreWorkOnAll(t *testing.T) {
	for name, c := range map[string]struct {
		owners, members []string
		level           bool
		at              time.Duration
		want            bool
	}{
		"all work":                          {[]string{"a", "b"}, []string{"a", "b"}, true, calm, true},
		"they have just begun":              {[]string{"a", "b"}, []string{"a", "b"}, true, calm - 1, false},
		"one is gone":                       {[]string{"a", "b"}, []string{"b"}, false, calm, false},
		"one has one more than another":     {[]string{"a", "b"}, []string{"a", "b", "c"}, true, calm, true},
		"one has two more than another":     {[]string{"a", "a"}, []string{"a", "b"}, true, calm, false},
		"no matter if they need not be so":  {[]string{"a", "a"}, []string{"a", "b"}, false, calm, true},
		"no pod has worked for a long time": {[]string{"a", "b"}, []string{"a", "b"}, true, calm + 2*stall, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(len(c.owners))
			for p, owner := range c.owners {
				for d := time.Duration(0); d <= calm; d += stall / 2 {
					b.worked(p, owner, at(d))
				}
			}
			if got := b.settled(c.members, c.level, at(c.at)); got != c.want {
				t.Errorf("settled is %t", got)
			}
		})
	}
}

// The group's times are short, so that the test is.
func TestAGroupPlaysAllScenes(t *testing.T) {
	o := options{partitions: 6, members: 2, rounds: 1, pace: 10 * time.Millisecond}
	c := contender{name: "group", level: true, open: openKafka(
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
	)}
	results, err := play(t.Context(), c, o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, moved := range []int{2, 2, 3, 6, 6} { // at least: a busy machine may make a member late, whose partitions move then
		if r := results[i]; len(r.moved) < moved || r.most < 2 {
			t.Errorf("%s: %d moved, %d are one member's at most", r.scene, len(r.moved), r.most)
		}
	}
	if crash := results[2]; slices.Max(crash.moved) < time.Second {
		t.Errorf("a member's partitions moved %v after it crashed", slices.Max(crash.moved))
	}
}

func TestWhatFailsEndsThePlay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := contender{open: openKafka()}
	if _, err := play(ctx, c, options{partitions: 1, members: 1, start: time.Hour, pace: time.Hour}, io.Discard); err == nil {
		t.Error("it ended without an error")
	}
}

func TestTheResultsAreWrittenDown(t *testing.T) {
	results := make([]result, 0, len(contenders())*len(scenes()))
	for _, c := range contenders() {
		for i, scene := range scenes() {
			r := result{contender: c, scene: scene, most: 6}
			for k := range 6 * i {
				r.moved = append(r.moved, time.Duration(len(results)*k+1)*40*time.Millisecond)
			}
			if i == 1 {
				r.stayed = []time.Duration{time.Second, 2 * time.Second}
			}
			results = append(results, r)
		}
	}
	dir := t.TempDir()
	var out bytes.Buffer
	if err := write(dir, results, &out); err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]string{
		"groups.md":  "| idalloc, pods plan | failover-after 30 s | leave | 6 | 0.16 | 0.24 | 2 | 2.00 | 3.8 | 6 |",
		"groups.csv": `"idalloc, pods plan",failover-after 30 s,join,0,–,–,0,–,0.0,6`, "groups.svg": "<svg",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a file of the test
		if err != nil || !strings.Contains(string(b), has) {
			t.Errorf("%s does not have %q: %v\n%s", name, has, err, b[:min(len(b), 1000)])
		}
	}
	if !strings.Contains(out.String(), "| rollout |") {
		t.Errorf("the table is not shown: %s", &out)
	}
}
