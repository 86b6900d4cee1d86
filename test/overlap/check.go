package overlap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrNoSamples is returned when there is nothing to check, which proves nothing.
var ErrNoSamples = errors.New("overlap: the logs show no id at all")

// maxListed is how many violations an error spells out.
const maxListed = 10

// Report is what the logs say.
type Report struct {
	Samples int
	// Violations are sentences; it is empty when all is well.
	Violations []string
	// Slots is by id, Pods by Record.Holder.
	Slots map[int]Slot
	Pods  map[string]Pod
}

// Slot is the history of one id.
type Slot struct {
	// Holders are the pods that showed the id, in order, one after a change of the holder.
	Holders []string
	// MedianGap and MaxGap are the times between two holders in which no pod showed the id.
	MedianGap, MaxGap time.Duration
}

// Pod says how good the log of a pod is.
type Pod struct {
	Samples int
	// LongestGap is the longest time between two samples: what is shorter may have escaped.
	LongestGap time.Duration
}

// Run is a series of samples of one pod with the same id and token. It showed the id for sure from
// Start to End. A single sample has End before Start; it is inside another run only as a whole, which
// is what intersects then asks.
type Run struct {
	Pod        string // Record.Holder
	ID         int
	Token      int64
	Start, End int64
}

func (a Run) intersects(b Run) bool { return a.Start <= b.End && b.Start <= a.End }

// Check compares the records of all pods. The records of one pod must be in their order. The error
// says that the records cannot be used or lists violations; the report is complete in the second case.
func Check(records []Record) (Report, error) {
	report := Report{Samples: len(records), Slots: map[int]Slot{}, Pods: map[string]Pod{}}
	byPod := map[string][]Record{}
	for _, r := range records {
		byPod[r.Holder()] = append(byPod[r.Holder()], r)
	}
	byID := map[int][]Run{}
	for name, own := range byPod {
		pod, err := quality(own)
		if err != nil {
			return report, err
		}
		report.Pods[name] = pod
		report.Violations = append(report.Violations, outOfRange(own)...)
	}
	for _, r := range Runs(records) {
		byID[r.ID] = append(byID[r.ID], r)
	}
	if len(byID) == 0 {
		return report, ErrNoSamples
	}
	for id, history := range byID {
		slices.SortFunc(history, func(a, b Run) int { return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.Pod, b.Pod)) })
		report.Slots[id] = slot(history)
		report.Violations = append(report.Violations, compare(history)...)
	}
	slices.Sort(report.Violations)
	return report, report.err()
}

func (r Report) err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("overlap: %d violations in %d samples:\n%s", len(r.Violations), r.Samples,
		strings.Join(r.Violations[:min(maxListed, len(r.Violations))], "\n"))
}

func quality(own []Record) (Pod, error) {
	pod := Pod{Samples: len(own)}
	for i, r := range own {
		if r.After < r.Before || i > 0 && r.Before < own[i-1].Before {
			return pod, fmt.Errorf("overlap: the clock of %s runs backwards at %q: were the logs of two hosts or two boots mixed?", r.Holder(), r)
		}
		if i > 0 {
			pod.LongestGap = max(pod.LongestGap, time.Duration(r.Before-own[i-1].Before))
		}
	}
	return pod, nil
}

// outOfRange reports each series of samples whose id is not in [0, count) once.
func outOfRange(own []Record) []string {
	var bad []string
	was := false
	for _, r := range own {
		is := r.ID != None && (r.ID < 0 || r.ID >= r.Count)
		if is && !was {
			bad = append(bad, fmt.Sprintf("id %d of %s is not in [0, %d) at %d ns", r.ID, r.Holder(), r.Count, r.Before))
		}
		was = is
	}
	return bad
}

// Runs cuts records into series, in the order of their first samples. The records of one pod must be in their order. A change of the
// token ends one, because the pod may have lost the id and got it back between two samples.
func Runs(records []Record) []Run {
	var all []Run
	open := map[string]int{} // of each pod, where its run is
	for _, r := range records {
		i, is := open[r.Holder()]
		switch {
		case r.ID == None:
			delete(open, r.Holder())
		case is && all[i].ID == r.ID && all[i].Token == r.Token:
			all[i].End = r.Before
		default:
			open[r.Holder()] = len(all)
			all = append(all, Run{Pod: r.Holder(), ID: r.ID, Token: r.Token, Start: r.After, End: r.Before})
		}
	}
	return all
}

// compare looks for two pods that showed the id at once, and for tokens that do not grow. history is
// sorted by start.
func compare(history []Run) []string {
	var bad []string
	for i, later := range history {
		for _, earlier := range history[:i] {
			if earlier.Pod == later.Pod {
				if later.Token < earlier.Token {
					bad = append(bad, fmt.Sprintf("id %d: the token of %s fell from %d to %d", later.ID, later.Pod, earlier.Token, later.Token))
				}
				continue
			}
			if earlier.intersects(later) {
				from, to := max(earlier.Start, later.Start), min(earlier.End, later.End)
				bad = append(bad, fmt.Sprintf("id %d: %s (token %d) and %s (token %d) both showed it for at least %s from %d ns on",
					later.ID, earlier.Pod, earlier.Token, later.Pod, later.Token, time.Duration(max(0, to-from)), from))
			}
			if later.Token <= earlier.Token {
				bad = append(bad, fmt.Sprintf("id %d: %s has token %d after %s had %d; a later holder needs a higher one",
					later.ID, later.Pod, later.Token, earlier.Pod, earlier.Token))
			}
		}
	}
	return bad
}

func slot(history []Run) Slot {
	var s Slot
	var gaps []time.Duration
	for i, r := range history {
		if i > 0 && history[i-1].Pod == r.Pod {
			continue
		}
		s.Holders = append(s.Holders, r.Pod)
		if i > 0 {
			gaps = append(gaps, time.Duration(max(0, r.Start-history[i-1].End)))
		}
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		s.MedianGap, s.MaxGap = gaps[len(gaps)/2], gaps[len(gaps)-1]
	}
	return s
}
