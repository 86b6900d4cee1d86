package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// settledPods returns a snapshot of a Deployment with this many replicas, whose pods a, b, c… hold the ids 0, 1, 2….
func settledPods(count int) snapshot {
	n := snapshot{
		owner: store.Owner{
			Ref:     store.Ref{APIVersion: "apps/v1", Kind: store.Deployment, Namespace: "shop", Name: worker},
			Count:   count,
			Rollout: store.Rollout{MaxUnavailable: 1},
			Record:  assignment.Record{Present: true, State: assignment.State{Slots: assignment.Slots{}}},
		},
		pods:    map[string]pod{},
		rollout: rollout{outdated: map[string]bool{}},
	}
	for id := range count {
		p := n.add(string(rune('a' + id)))
		n.name(id, p.Name)
		n.lock(p.Name, id)
	}
	return n
}

// add adds a live pod without a slot. Each pod is younger than the one that was added before it.
func (n snapshot) add(name string) pod {
	p := pod{
		Pod: proposal.Pod{
			Name: name, UID: "uid-" + name, Owned: true, Controller: "uid-5d9", Ordinal: proposal.NoOrdinal, Created: time.Unix(int64(len(n.pods)), 0),
			Receipt: receipt.Receipt{Share: receipt.Nothing()},
		},
		phase: "Running", controller: "worker-5d9", revision: "5d9",
	}
	n.pods[name] = p
	return p
}

// name adds an entry for a pod to the map.
func (n snapshot) name(id int, pod string) { n.owner.Record.State.Slots[id] = pod }

// edit changes a pod.
func (n snapshot) edit(name string, change func(*pod)) {
	p := n.pods[name]
	change(&p)
	n.pods[name] = p
}

func waiting() receipt.Receipt {
	return receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()}
}

func gaveUp() receipt.Receipt {
	return receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing(), Rank: 1}
}

// lock gives a pod a receipt for a slot.
func (n snapshot) lock(name string, id int) {
	n.edit(name, func(p *pod) {
		p.Receipt = receipt.Receipt{UID: p.UID, Owner: n.owner.String(), State: receipt.Locks, Share: receipt.Share{ID: id}}
	})
}

// unlock takes a pod's receipt away.
func (n snapshot) unlock(name string) {
	n.edit(name, func(p *pod) { p.Receipt = receipt.Receipt{Share: receipt.Nothing()} })
}

// damage makes pod b's receipt unreadable, with a label for this slot.
func (n snapshot) damage(id int) {
	n.edit("b", func(p *pod) {
		p.damage = `annotation idalloc.dev/receipt: not a receipt: "x"`
		p.Receipt = receipt.Receipt{State: receipt.Unreadable, Share: receipt.Share{ID: id}}
	})
}

// wipe removes all that idalloc wrote on the owner.
func (n *snapshot) wipe() { n.owner.Record = assignment.Record{} }

// free removes a slot's entry and its holder.
func (n snapshot) free(id int) {
	delete(n.pods, n.owner.Record.State.Slots[id])
	delete(n.owner.Record.State.Slots, id)
}

// handOver makes all pods with a slot hand it over.
func (n snapshot) handOver() {
	for name, p := range n.pods {
		if p.Receipt.Locked() {
			n.edit(name, func(p *pod) { p.Receipt.HandsOver = true })
		}
	}
}

// brief is a finding without its detail.
type brief struct {
	kind Kind
	id   int // -1 for none
	pod  string
}

func briefs(r Report) []brief {
	out := make([]brief, 0, len(r.Findings))
	for _, f := range r.Findings {
		b := brief{f.Kind, -1, f.Pod}
		if f.ID != nil {
			b.id = *f.ID
		}
		out = append(out, b)
	}
	return out
}

// checked is a change of settledPods(3), and what verify says of it.
type checked struct {
	change func(n *snapshot)
	want   []brief
	// says are parts of the findings and warnings.
	says []string
}

func checkAll(t *testing.T, cases map[string]checked) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := settledPods(3)
			if tc.change != nil {
				tc.change(&n)
			}
			report := reported(n)
			if got := briefs(report); !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", got, tc.want)
			}
			if report.OK != (len(tc.want) == 0) {
				t.Errorf("ok is %t with %d findings", report.OK, len(tc.want))
			}
			var text strings.Builder
			if err := report.Table(&text); err != nil {
				t.Fatal(err)
			}
			filled(t, text.String())
			for _, part := range tc.says {
				if !strings.Contains(text.String(), part) {
					t.Errorf("does not say %q:\n%s", part, text.String())
				}
			}
			if len(tc.says) == 0 && len(report.Warnings) > 0 {
				t.Errorf("unexpected warnings: %v", report.Warnings)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	checkAll(t, map[string]checked{
		"settled": {},
		"nothing assigned and pods wait": {
			change: func(n *snapshot) {
				n.wipe()
				for name := range n.pods {
					n.edit(name, func(p *pod) { p.Receipt = waiting() })
				}
			},
			want: []brief{{Unheld, 0, "a"}, {Unheld, 1, "b"}, {Unheld, 2, "c"}},
			says: []string{"--wait=1m", "see the log of idalloc in pod c"},
		},
		"a free slot, and the process of the only pod without one gave it up and ended": {change: func(n *snapshot) {
			n.free(1)
			n.add("z")
			n.edit("z", func(p *pod) { p.Receipt = gaveUp(); p.Receipt.State = receipt.GaveUp })
		}},
		"a slot without entry while a pod waits": {
			change: func(n *snapshot) { n.free(1); n.add("z"); n.add("d") },
			want:   []brief{{Unheld, 1, "z"}},
		},
		"a pod of another revision waits beside a holder that has no receipt yet": {
			change: func(n *snapshot) {
				n.unlock("a")
				n.free(1)
				n.add("z")
				n.edit("z", func(p *pod) { p.Controller = "uid-7c4" })
			},
			want: []brief{{Unheld, 1, "z"}},
		},
		"nothing assigned and pods of two revisions wait": {
			change: func(n *snapshot) {
				n.wipe()
				for name := range n.pods {
					n.edit(name, func(p *pod) { p.Receipt, p.Controller = waiting(), "uid-"+name })
				}
			},
			want: []brief{{Unheld, 0, "a"}, {Unheld, 1, "b"}, {Unheld, 2, "c"}},
		},
		"two pods wait beside a free slot and a dead holder's": {
			change: func(n *snapshot) {
				n.free(1)
				delete(n.pods, "a")
				n.add("y")
				n.add("z")
			},
			want: []brief{{HeldByDead, 0, "a"}, {Unheld, 1, "y"}},
		},
		"all slots held while a pod waits": {change: func(n *snapshot) { n.add("z") }},
		"a free slot, and only a Terminating pod waits": {change: func(n *snapshot) {
			n.free(1)
			n.add("z")
			n.edit("z", func(p *pod) { p.Terminating = true })
		}},
		"a free slot, and only a pod without controller waits": {change: func(n *snapshot) {
			n.free(1)
			n.add("z")
			n.edit("z", func(p *pod) { p.controller = "" })
		}},
		"a free slot, and only a pod from before idalloc waits": {change: func(n *snapshot) {
			n.free(1)
			n.add("z")
			n.edit("z", func(p *pod) { p.revision = "old" })
			n.rollout.outdated["old"] = true
		}},
		"a free slot, and only a pod that made room for another one waits": {
			change: func(n *snapshot) {
				n.free(1)
				n.add("z")
				n.edit("z", func(p *pod) { p.Receipt = gaveUp() })
				n.add("y")
				n.edit("y", func(p *pod) { p.Terminating = true })
			},
			want: []brief{{Unkept, 1, "z"}},
			says: []string{"gave its slot up for another pod", "repair their revision, or undo it"},
		},
		"a free slot, a pod that made room, and the one that it made room for": {
			change: func(n *snapshot) {
				n.free(1)
				n.add("z")
				n.edit("z", func(p *pod) { p.Receipt = gaveUp() })
				n.add("y")
			},
			want: []brief{{Unheld, 1, "y"}},
		},
		"a free slot, and a pod that gave up has room": {
			change: func(n *snapshot) {
				n.free(1)
				n.add("z")
				n.edit("z", func(p *pod) { p.Receipt = gaveUp() })
			},
			want: []brief{{Unkept, 1, "z"}},
		},
		"an ordinal waits for its own slot": {
			change: func(n *snapshot) {
				n.free(1)
				n.free(2)
				n.add("z")
				n.edit("z", func(p *pod) { p.Ordinal = 2 })
			},
			want: []brief{{Unheld, 2, "z"}},
		},
		"an ordinal whose own slot is taken takes another": {
			change: func(n *snapshot) {
				n.free(1)
				n.add("z")
				n.edit("z", func(p *pod) { p.Ordinal = 0 })
			},
			want: []brief{{Unheld, 1, "z"}},
		},
		"an ordinal waits for the end of its own slot's pod": {change: func(n *snapshot) {
			n.free(1)
			n.add("z")
			n.edit("z", func(p *pod) { p.Ordinal = 0 })
			n.edit("a", func(p *pod) { p.Terminating = true })
		}},
		"a holder is gone": {
			change: func(n *snapshot) { delete(n.pods, "b") },
			want:   []brief{{HeldByDead, 1, "b"}},
			says:   []string{"which is gone", "idalloc gc deployment/worker -n shop"},
		},
		"a holder Failed, and a pod waits": {
			change: func(n *snapshot) {
				n.edit("b", func(p *pod) { p.phase = "Failed" })
				n.add("z")
			},
			want: []brief{{HeldByDead, 1, "b"}},
			says: []string{"which is Failed"},
		},
		"a holder is Terminating":      {change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Terminating = true }) }},
		"a live entry above the count": {change: func(n *snapshot) { n.owner.Count = 2 }},
		"a dead entry above the count": {
			change: func(n *snapshot) {
				n.owner.Count = 2
				delete(n.pods, "c")
			},
			want: []brief{{HeldByDead, 2, "c"}},
			says: []string{"after ten seconds", "idalloc gc deployment/worker -n shop"},
		},
		"no pod lives after a scale-down to 0": {
			change: func(n *snapshot) {
				n.owner.Count = 0
				clear(n.pods)
			},
			says: []string{"for ids 0, 1, 2, and no pod lives", "idalloc gc deployment/worker -n shop"},
		},
		"a Job that has finished": {
			change: func(n *snapshot) {
				n.owner.Kind, n.rollout.finished = store.Job, true
				for name := range n.pods {
					n.edit(name, func(p *pod) { p.phase = "Succeeded" })
				}
			},
			says: []string{"ids 0, 1, 2", "idalloc gc job/worker"},
		},
		"two receipts for one slot": {
			change: func(n *snapshot) { n.add("z"); n.lock("z", 1) },
			want:   []brief{{HeldTwice, 1, "z"}},
			says:   []string{"the receipts of pods b and z lock id 1", "written later withdraws within seconds", "delete the pod that does not act under the id"},
		},
		"two receipts for one slot, and the one that was written first is that of the younger pod": {
			change: func(n *snapshot) {
				n.add("z")
				n.lock("z", 1)
				n.edit("b", func(p *pod) { p.written = time.Unix(1000, 0) })
				n.edit("z", func(p *pod) { p.written = time.Unix(999, 0) })
			},
			want: []brief{{HeldTwice, 1, "b"}},
		},
		"a receipt for a slot that the map gives to another live pod": {
			change: func(n *snapshot) {
				n.add("z")
				n.name(1, "z")
			},
			want: []brief{{Mismatch, 1, "b"}},
			says: []string{"pod b locks id 1, and the assignment gives it to pod z. The next pod that plans puts that right"},
		},
		"a receipt for a slot that the map gives to a dead pod": {
			change: func(n *snapshot) { n.name(1, "gone") },
			want:   []brief{{Mismatch, 1, "b"}},
			says:   []string{"gives it to pod gone, which is gone"},
		},
		"two receipts for one slot without a map": {
			change: func(n *snapshot) {
				n.add("z")
				n.lock("z", 1)
				n.wipe()
			},
			want: []brief{{Changed, -1, ""}, {HeldTwice, 1, "z"}},
		},
		"the map was removed": {
			change: func(n *snapshot) { n.wipe() },
			want:   []brief{{Changed, -1, ""}},
			says:   []string{"idalloc gc deployment/worker -n shop", "holders keep their ids"},
		},
		"a receipt without an entry": {
			change: func(n *snapshot) { delete(n.owner.Record.State.Slots, 1) },
			want:   []brief{{Mismatch, 1, "b"}},
		},
		"a receipt for another slot than the entry": {
			change: func(n *snapshot) { n.lock("b", 7) },
			want:   []brief{{OtherID, 1, "b"}},
			says:   []string{"whose receipt locks id 7"},
		},
		"a receipt that is copied from another slot's holder": {
			change: func(n *snapshot) { n.lock("b", 2) },
			want:   []brief{{OtherID, 1, "b"}, {HeldTwice, 2, "c"}},
		},
		"two holders whose entries were exchanged": {
			change: func(n *snapshot) { n.name(0, "b"); n.name(1, "a") },
			want:   []brief{{Mismatch, 0, "a"}, {Mismatch, 1, "b"}},
		},
		"a holder that has not taken its slot yet": {change: func(n *snapshot) { n.unlock("b") }},
		"a pod that does not take its slot": {
			change: func(n *snapshot) { n.unlock("b"); n.now, n.written = time.Unix(1000, 0), time.Unix(880, 0) },
			want:   []brief{{NotTaken, 1, "b"}},
			says:   []string{"has given id 1 to pod b for 2m0s at least, and the pod has not locked it", "it may not reach the API server. Otherwise an admission webhook or policy removes its receipt"},
		},
		"a pod whose program runs does not take its slot for seconds": {
			change: func(n *snapshot) {
				n.unlock("b")
				n.edit("b", func(p *pod) { p.Receipt = waiting() })
				n.now, n.written = time.Unix(1000, 0), time.Unix(980, 0)
			},
			want: []brief{{NotTaken, 1, "b"}},
		},
		"a pod that is not known to run does not take its slot for seconds": {change: func(n *snapshot) {
			n.unlock("b")
			n.edit("b", func(p *pod) { p.phase = "Pending" })
			n.now, n.written = time.Unix(1000, 0), time.Unix(980, 0)
		}},
		"the map was damaged": {
			change: func(n *snapshot) {
				n.owner.Record.State.Slots = nil
				n.owner.Record.Problems = []assignment.ProblemError{{Key: assignment.Key, Detail: `not an id: "01"`}}
			},
			want: []brief{{Damaged, -1, ""}},
			says: []string{`annotation idalloc.dev/assignment: not an id: "01": it counts as absent`},
		},
		"a receipt was damaged": {
			change: func(n *snapshot) { n.damage(1) },
			want:   []brief{{DamagedReceipt, 1, "b"}},
			says:   []string{`annotation idalloc.dev/receipt: not a receipt: "x"`, "It locks id 1 and every partition"},
		},
		"a receipt was damaged, and the label says another's slot": {
			change: func(n *snapshot) { n.damage(2) },
			want:   []brief{{OtherID, 1, "b"}, {DamagedReceipt, 2, "b"}, {HeldTwice, 2, "c"}},
		},
		"a receipt was damaged and its label removed": {
			change: func(n *snapshot) { n.damage(receipt.NoID) },
			want:   []brief{{DamagedReceipt, -1, "b"}},
		},
		"the labels of a holder were changed": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.damage = "labels x" }) },
			want:   []brief{{DamagedLabels, 1, "b"}},
			says:   []string{"labels of pod b: labels x"},
		},
		"requests that cannot be met": {
			change: func(n *snapshot) {
				n.add("z")
				n.owner.Record.State.Handover = assignment.Slots{0: "gone", 1: "a", 2: "z", 9: "y"}
			},
			says: []string{"pod gone for id 0", "pod a for id 1 cannot be met any more (the pod has id 0)", "pod y for id 9 cannot be met any more (the count is 3)"},
		},
		"a rolling update would wait for ever": {
			change: func(n *snapshot) { n.owner.Rollout.MaxUnavailable = 0 },
			says:   []string{"maxSurge: 0", "--drain-exec", "idalloc run", "ids over: a, b, c"},
		},
		"a rolling update would wait for ever at fewer replicas": {
			change: func(n *snapshot) { n.owner.Rollout.BlocksBelow = 3 },
			says:   []string{"below 3 replicas", "ids over: a, b, c", "maxSurge: 0"},
		},
		"a rolling update waits for ever at more replicas than ever were": {change: func(n *snapshot) { n.owner.Rollout.BlocksBelow = 4 }},
		"pods that hand over, at fewer replicas": {change: func(n *snapshot) {
			n.owner.Rollout.BlocksBelow = 3
			n.handOver()
		}},
		"a rolling update whose pods hand over": {change: func(n *snapshot) {
			n.owner.Rollout.MaxUnavailable = 0
			n.handOver()
		}},
	})
}

func TestCheckCountsWhatIsHeld(t *testing.T) {
	n := settledPods(3)
	n.free(1)
	n.add("z")
	r := reported(n)
	if r.Held != 2 || r.Count != 3 || r.Waiting != 1 {
		t.Errorf("%d of %d ids are held and %d pods wait, want 2 of 3 and 1", r.Held, r.Count, r.Waiting)
	}
}

func TestLongListsAreCut(t *testing.T) {
	n := settledPods(9)
	n.owner.Rollout.MaxUnavailable = 0
	if r := reported(n); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "a, b, c, d, e and 4 more") {
		t.Errorf("the warnings are %v", r.Warnings)
	}
}
