package conformance_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/conformance"
)

// history is one of those that test/proof prints: python3 -B test/proof/prove.py take gated >internal/conformance/testdata/histories.txt
type history struct {
	name  string
	steps []conformance.Step
	// lacks is the condition that was left out, empty if none was.
	lacks    string
	receipts map[string]conformance.Receipt
	gated    map[string]bool
}

var (
	header   = regexp.MustCompile(`^(?:without (.*) \([\w-]+: (.*)\): two at work|(.*): it happens)`)
	numbered = regexp.MustCompile(`^ +\d+\. ([\w-]+) (.*)$`)
	argument = regexp.MustCompile(`([A-Z])=(?:\(([^)]*)\)|(\w+))(?: \(([^)]*)\))?`)
)

func read(t *testing.T) (all []*history) {
	t.Helper()
	text, err := os.ReadFile("testdata/histories.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := header.FindStringSubmatch(line); m != nil {
			all = append(all, &history{name: m[1] + m[3], lacks: m[2], receipts: map[string]conformance.Receipt{}, gated: map[string]bool{}})
		} else if m := numbered.FindStringSubmatch(line); m != nil {
			all[len(all)-1].add(conformance.Do(m[1]), m[2])
		}
	}
	return all
}

// add adds a step. What is fixed about a pod or a receipt stands where it is named first.
func (h *history) add(do conformance.Do, args string) {
	s := conformance.Step{Do: do}
	for _, m := range argument.FindAllStringSubmatch(args, -1) {
		list, name, facts := m[2], m[3], m[4]
		switch m[1] {
		case "P":
			s.Pod = name
			h.gated[name] = h.gated[name] || facts == "gated"
		case "X":
			s.Thing = name
		case "T":
			s.Showed = h.receipt(name, facts).ID
		case "N":
			s.IDs = strings.Fields(strings.ReplaceAll(list, ",", ""))
		case "B":
			s.Receipt = h.receipt(name, facts)
		case "R":
			if s.Stands = h.receipt(name, facts); do == conformance.Foreign {
				s.Receipt = s.Stands
			}
		}
	}
	if s.Pod == "" {
		s.Pod = s.Receipt.Pod
		h.gated[s.Pod] = true
	}
	h.steps = append(h.steps, s)
}

func (h *history) receipt(name, facts string) conformance.Receipt {
	r, known := h.receipts[name]
	if known {
		return r
	}
	r.ID = name
	for fact := range strings.SplitSeq(facts, ", ") {
		switch what, value, _ := strings.Cut(fact, " "); what {
		case "of":
			r.Pod = value
		case "tests":
			r.Tests = value
		case "locks":
			r.Locks = append(r.Locks, value)
		case "notes":
			r.Notes = append(r.Notes, value)
		case "begun":
			r.Begun = true
		}
	}
	h.receipts[name] = r
	return r
}

// play returns what becomes of the history. A pod has at the beginning the receipt that its first write tests, unless another writer wrote that.
func (h *history) play() (*conformance.Checker, error) {
	var c conformance.Checker
	first := map[string]string{}
	for _, s := range h.steps {
		_, written := h.receipts[s.Receipt.Tests]
		if _, known := first[s.Pod]; !known {
			first[s.Pod] = "first of " + s.Pod
		}
		if s.Do != conformance.Foreign && s.Receipt.ID != "" && !written {
			first[s.Pod] = s.Receipt.Tests
		}
	}
	for pod, receipt := range first {
		c.Add(pod, receipt, h.gated[pod])
	}
	for _, s := range h.steps {
		if err := c.Take(s); err != nil {
			return &c, err
		}
	}
	return &c, nil
}

// What the proof allows conforms, and what it finds where a condition is left out is refused, because of that condition.
func TestTheCheckerIsTheProof(t *testing.T) {
	all := read(t)
	if len(all) < 30 {
		t.Fatalf("there are %d histories", len(all))
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			c, err := h.play()
			_, lacks, _ := strings.Cut(h.lacks, " ") // the first word says whose write it is
			switch {
			case h.lacks == "" && err != nil:
				t.Errorf("the proof allows it, but %v", err)
			case h.lacks != "" && (!errors.Is(err, conformance.ErrRefused) || !strings.HasSuffix(err.Error(), lacks)):
				t.Errorf("got %v, want that it lacks %q", err, h.lacks)
			case len(c.Two()) > 0:
				t.Errorf("two are at work on %v, and no step was refused", c.Two())
			}
		})
	}
}

func TestAStepOfAnUnknownPodIsAnError(t *testing.T) {
	var c conformance.Checker
	if err := c.Take(conformance.Step{Do: conformance.T3, Pod: "a"}); err == nil {
		t.Error("it was taken in")
	}
}
