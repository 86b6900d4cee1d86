package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// rolling returns a snapshot of a rolling update that is stuck. Its three old pods do not hand over. The new pod x waits, and
// Kubernetes ends no pod.
func rolling() snapshot {
	n := settledPods(3)
	n.owner.Rollout = store.Rollout{MaxSurge: 1}
	n.rollout.current = "6fb"
	n.add("x")
	n.edit("x", func(p *pod) { p.controller, p.revision, p.Receipt = "worker-6fb", "6fb", waiting() })
	return n
}

// Each deletion of a pod without a grace period is a force delete. Strict mode protects its id.
func TestPodsWithoutAGracePeriod(t *testing.T) {
	graceless := func(strict bool) func(*snapshot) {
		return func(n *snapshot) {
			n.edit("b", func(p *pod) { p.graceless, p.Receipt.Strict = true, strict })
		}
	}
	checkAll(t, map[string]checked{
		"in default mode": {change: graceless(false), says: []string{"terminationGracePeriodSeconds: 0", "of pods b ", "force delete"}},
		"in strict mode":  {change: graceless(true)},
	})
}

func TestARollingUpdateThatIsStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *snapshot)
		pod    string // of the finding
		// says are parts of the findings and warnings. If pod or says is set, a finding that the rollout is stuck is expected.
		says []string
		// warns says that there must be a warning that the rollout would or may become stuck.
		warns bool
	}{
		"no pod hands over": {
			pod:  "x",
			says: []string{"stuck: the rolling update of Deployment/worker is stuck. Pod x", "a, b, c", `{"maxSurge":0,"maxUnavailable":1}`, "kubectl patch deployment worker -n shop"},
		},
		"another one, too, waits": {
			change: func(n *snapshot) {
				n.owner.Rollout.MaxSurge = 2
				n.add("y")
				n.edit("y", func(p *pod) { p.controller, p.revision = "worker-6fb", "6fb" })
			},
			pod: "x", says: []string{"Pod x"},
		},
		"one is done, and the next waits": {
			change: func(n *snapshot) {
				n.edit("a", func(p *pod) { p.controller, p.revision, p.ready = "worker-6fb", "6fb", true })
			},
			pod: "x", says: []string{"a, b, c"},
		},
		"an old pod hands over": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Receipt.HandsOver = true }) }, warns: true,
		},
		"an old pod has not said yet whether it hands over": {
			change: func(n *snapshot) { n.unlock("b") }, warns: true,
		},
		"an old pod is Terminating": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Terminating = true }) }, warns: true,
		},
		"the new pod is Ready without an id": {
			change: func(n *snapshot) { n.edit("x", func(p *pod) { p.ready = true }) }, warns: true,
		},
		"the new revision shows no sign of idalloc": {
			change: func(n *snapshot) { n.unlock("x") }, warns: true,
		},
		"one old pod too many is there, and one of them will be ended": {
			change: func(n *snapshot) { n.add("d") }, warns: true,
		},
		"a new pod has an id and will be Ready": {
			change: func(n *snapshot) {
				n.edit("a", func(p *pod) { p.controller, p.revision = "worker-6fb", "6fb" })
				n.add("d")
			},
			warns: true,
		},
		"the Lease of a free slot counts still": {
			change: func(n *snapshot) {
				n.free(1)
				n.leases.held = map[int]store.Lease{1: {ID: 1, Pod: "b", Holder: "uid-b", Lasts: 40 * time.Second, Renewed: n.now}}
			},
			warns: true,
		},
		"Kubernetes ends old pods first": {change: func(n *snapshot) { n.owner.Rollout.MaxUnavailable = 1 }},
		"only a pod of an older revision waits": {
			change: func(n *snapshot) {
				n.edit("x", func(p *pod) { p.revision = "5d9" })
				n.rollout.current = ""
			},
			warns: true,
		},
		"no pod is old any more": {
			change: func(n *snapshot) {
				for name := range n.pods {
					n.edit(name, func(p *pod) { p.revision = "6fb" })
				}
			},
			warns: true,
		},
		"the deadline is over": {
			change: func(n *snapshot) {
				n.handOver()
				n.rollout.overdue = `ReplicaSet "worker-6fb" has timed out progressing.`
			},
			says: []string{"made no progress", "timed out progressing", "kubectl rollout undo deployment/worker -n shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := rolling()
			if tc.change != nil {
				tc.change(&n)
			}
			report := reported(n)
			var want []brief
			if len(tc.says) > 0 {
				want = []brief{{map[bool]Kind{true: Stuck, false: Overdue}[tc.pod != ""], -1, tc.pod}}
			}
			if got := briefs(report); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			warned := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "would wait for ever") })
			if warned != tc.warns {
				t.Errorf("the warnings are %v", report.Warnings)
			}
			var text strings.Builder
			if err := report.Table(&text); err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.says {
				if !strings.Contains(text.String(), part) {
					t.Errorf("does not say %q:\n%s", part, text.String())
				}
			}
		})
	}
}

func TestAWorkloadThatDoesNotUseIdalloc(t *testing.T) {
	unused := func() snapshot {
		n := settledPods(3)
		n.owner.Record, n.owner.Rollout.MaxUnavailable = assignment.Record{}, 0
		for name := range n.pods {
			n.unlock(name)
		}
		return n
	}
	var text strings.Builder
	r := reported(unused())
	if err := r.Table(&text); err != nil {
		t.Fatal(err)
	}
	if !r.OK || !r.Unused || len(r.Warnings) != 1 || strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), "does not use idalloc") {
		t.Errorf("says %q of %+v", text.String(), r)
	}
	for name, sign := range map[string]func(p *pod){
		"a receipt":  func(p *pod) { p.Receipt.State = receipt.Locks },
		"gave up":    func(p *pod) { p.Receipt = gaveUp() },
		"waits":      func(p *pod) { p.Receipt = waiting() },
		"is damaged": func(p *pod) { p.Receipt.State = receipt.Unreadable },
		"a dead one": func(p *pod) { p.phase, p.Receipt = "Failed", gaveUp() },
	} {
		n := unused()
		n.edit("b", sign)
		if reported(n).Unused {
			t.Errorf("with a pod that has %s it is said not to use idalloc", name)
		}
	}
}
