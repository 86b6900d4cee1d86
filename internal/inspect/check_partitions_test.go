package inspect

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// rowAt is when the owners of the partitions of a test were written, and the map.
var rowAt = time.UnixMilli(1795219200000) //nolint:gochecknoglobals // a constant that Go cannot express

// dividedPods returns settledPods(3), which work on six partitions: a on 0-1, b on 2-3, c on 4-5. All was written ten minutes ago, and
// the receipts five minutes ago.
func dividedPods() snapshot {
	n := settledPods(3)
	n.now, n.written = rowAt.Add(10*time.Minute), rowAt
	n.owner.Wish = assignment.Wish{Count: 6, HasCount: true, FailoverAfter: 30 * time.Second}
	n.owner.Record.State.Row = &assignment.Row{Count: 6, Strategy: placement.NameSticky, Owners: placement.Owners{}}
	for id, name := range []string{"a", "b", "c"} {
		set := placement.Between(2*id, 2*id+1)
		n.stored().Owners[id] = set
		n.locksPartitions(name, set)
		n.edit(name, func(p *pod) { p.written = rowAt.Add(5 * time.Minute) })
	}
	n.handOver()
	return n
}

func (n snapshot) stored() *assignment.Row { return n.owner.Record.State.Row }

// locksPartitions has the receipt of a pod lock other partitions.
func (n snapshot) locksPartitions(name string, set placement.Set) {
	n.edit(name, func(p *pod) { p.Receipt.Share.Of, p.Receipt.Share.Partitions = 6, set })
}

// abstain has the receipt of a pod say that it works on no partitions.
func (n snapshot) abstain(name string) {
	n.edit(name, func(p *pod) { p.Receipt.Share.Of, p.Receipt.Share.Partitions = 0, placement.Set{} })
}

// Rows of the table for pods that work on what is theirs, and a finding about no particular partitions or pod.
const (
	ofA, ofB, ofC = "0-1 0 a owned >5m", "2-3 1 b owned >5m", "4-5 2 c owned >5m"
	keysWrong     = "partitionKeys  "
	pending       = "partitionPending  "
)

// What verify and get say of partitions.
func TestPartitionsFromOutside(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *snapshot)
		// finds are the findings: kind, partitions, pod. warns and notes are parts of what else is said, and says are parts of findings.
		finds, says, warns, notes []string
		// rows are the rows of the table, each with single blanks; nil: not asked.
		rows []string
	}{
		"settled": {rows: []string{ofA, ofB, ofC}},
		"a pod is paused": {
			change: func(n *snapshot) {
				n.stored().Owners = placement.Owners{0: placement.Between(0, 2), 2: placement.Between(3, 5)}
				n.locksPartitions("a", placement.Between(0, 2))
				n.locksPartitions("c", placement.Between(3, 5))
				n.abstain("b")
			},
			warns: []string{"pod b with id 1 works on no partitions, which other ids get: it was paused"},
			rows:  []string{"0-2 0 a owned >5m", "3-5 2 c owned >5m", "- 1 b paused >5m"},
		},
		"a pod rests, and the row has not changed yet": {
			change: func(n *snapshot) {
				n.abstain("b")
				n.edit("b", func(p *pod) { p.Receipt.Rank = 4 })
				n.written = n.now
			},
			warns: []string{"its program failed 3 times in a row"},
			rows:  []string{ofA, "2-3 1 b waiting -", ofC, "- 1 b paused >5m"},
		},
		"a pod is paused, and its work on one has not stopped": {
			change: func(n *snapshot) {
				n.stored().Owners = placement.Owners{0: placement.Between(0, 2), 2: placement.Between(4, 5)}
				n.locksPartitions("a", placement.Between(0, 2))
				n.abstain("b")
				n.edit("b", func(p *pod) { p.Receipt.Share.Partitions = placement.Of(3) })
			},
			finds: []string{"partitionMismatch 3 b"},
			says:  []string{"It lets go when its work on them has stopped, and no other pod gets them before"},
			warns: []string{"pod b with id 1 works on no partitions"},
			rows:  []string{"0-2 0 a owned >5m", "3 - b stopping -", ofC, "- 1 b paused >5m"},
		},
		"no partitions": {
			change: func(n *snapshot) { n.unwanted(); n.forget() },
			rows:   []string{"Deployment/worker in namespace shop has no partitions: annotation idalloc.dev/partition-count says how many there are to be"},
		},
		"two pods lock a partition": {
			change: func(n *snapshot) { n.locksPartitions("b", placement.Between(1, 3)) },
			finds:  []string{"partitionTwice 1 b"},
			says:   []string{"the receipts of pods a and b lock partitions 1", "written later lets go", "delete the pod that does not work on them"},
			rows:   []string{"0 0 a owned >5m", "1 0 a duplicate -", ofB, ofC},
		},
		"two pods lock partitions whose owners were removed": {
			change: func(n *snapshot) {
				n.locksPartitions("b", placement.Between(0, 3))
				n.owner.Record.State.Row = nil
			},
			finds: []string{"partitionPending  ", "partitionTwice 0-1 b", "partitionsChanged  "},
			says:  []string{"The next pod that plans writes it again within seconds"},
			rows:  []string{"0-1 - a duplicate -", ofB, ofC},
		},
		"a pod locks a partition of another id's, which does not lock it": {
			change: func(n *snapshot) {
				n.locksPartitions("a", placement.Of(0))
				n.locksPartitions("b", placement.Between(1, 3))
			},
			finds: []string{"partitionMismatch 1 b"},
			says:  []string{"pod b locks partitions 1, and annotation idalloc.dev/partition-owners does not give them to its id", "kubectl delete pod b -n shop"},
			rows:  []string{"0 0 a owned >5m", "1 0 b stopping -", ofB, ofC},
		},
		"a pod locks a partition without an owner": {
			change: func(n *snapshot) { n.stored().Owners[2] = placement.Of(4) },
			finds:  []string{"partitionMismatch 5 c"},
			rows:   []string{ofA, ofB, "4 2 c owned >5m", "5 - c stopping -"},
		},
		"partitions without an owner for ten minutes": {
			change: func(n *snapshot) { n.stored().Owners[2] = placement.Of(4); n.locksPartitions("c", placement.Of(4)) },
			finds:  []string{"partitionUnowned 5 "},
			says:   []string{"for 10m0s at least, as long as idalloc has not written the workload"},
			rows:   []string{ofA, ofB, "4 2 c owned >5m", "5 - - unowned >10m"},
		},
		"partitions without an owner for a moment, as far as verify can see": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.now = rowAt.Add(30 * time.Second)
			},
			warns: []string{"partitions 5 belong to no id, for 30s at least"},
		},
		"partitions without an owner while others wait for ever": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.owner.Wish.FailoverAfter = -1
			},
			finds: []string{"partitionUnowned 5 "},
		},
		"a clock that is behind": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.now = rowAt.Add(-time.Hour)
			},
			warns: []string{"for 0s at least"},
			rows:  []string{"0-1 0 a owned >0s", "2-3 1 b owned >0s", "4 2 c owned >0s", "5 - - unowned >0s"},
		},
		"an id that no pod has, for ten minutes": {
			change: func(n *snapshot) { n.free(2) },
			finds:  []string{"partitionAwaiting 4-5 "},
			says:   []string{"belong to id 2, which no pod has, for 10m0s at least", "after 30s"},
			rows:   []string{ofA, ofB, "4-5 2 - waiting >10m"},
		},
		"an id that no pod has, for a moment": {
			change: func(n *snapshot) { n.free(2); n.now = rowAt.Add(time.Second) },
			warns:  []string{"belong to id 2, which no pod has, for 1s at least, as long as idalloc has not written the workload. Its next holder gets them; otherwise other ids do, after 30s"},
		},
		"an id that no pod has, for a moment, and a stand-in that is to work at once": {
			change: func(n *snapshot) {
				n.free(2)
				n.now = rowAt.Add(time.Second)
				n.stored().Strategy, n.owner.Wish.Strategy = "primary", "primary"
			},
			warns: []string{"otherwise other ids do, at once, or after 30s while a pod waits or a rolling update is under way (annotation"},
		},
		"an id that no pod has, where partitions wait for ever": {
			change: func(n *snapshot) { n.free(2); n.owner.Wish.FailoverAfter = -1 },
			warns:  []string{"otherwise other ids do, never (annotation idalloc.dev/partition-failover-after)"},
		},
		"an id whose pod is gone": {
			change: func(n *snapshot) { delete(n.pods, "c") },
			finds:  []string{"dead  c"},
			warns:  []string{"partitions 4-5 belong to id 2, whose pod c is dead", "which verify cannot see"},
			rows:   []string{ofA, ofB, "4-5 2 - waiting -"},
		},
		"an id whose Lease counts still": {
			change: func(n *snapshot) {
				n.free(2)
				n.leases.held = map[int]store.Lease{2: {ID: 2, Pod: "c", Holder: "uid-c", Lasts: 40 * time.Second, Renewed: n.now.Add(-10 * time.Second)}}
			},
			warns: []string{"belong to id 2, which no pod has: the Lease of id 2 is that of pod c (gone) and counts until"},
			notes: []string{"another strict pod takes the id after that"},
		},
		"a member without partitions that no pod has": {
			change: func(n *snapshot) {
				n.stored().Owners[1] = placement.Between(2, 5)
				n.locksPartitions("b", placement.Between(2, 5))
				n.stored().Owners[2] = placement.Set{}
				n.free(2)
			},
		},
		"no pod works on partitions, and none are asked for": {
			change: func(n *snapshot) { n.forget(); n.owner.Wish.Count = 0 },
		},
		"a holder that does not lock its partitions yet": {
			change: func(n *snapshot) { n.locksPartitions("b", placement.Set{}); n.written = n.now },
			rows:   []string{ofA, "2-3 1 b taking -", ofC},
		},
		"a pod let partitions go, and no other takes them": {
			change: func(n *snapshot) { n.locksPartitions("b", placement.Of(3)) },
			finds:  []string{"partitionNotTaken 2 b"},
			says:   []string{"partitions 2 belong to id 1, and pod b, which has it, has not locked them for 5m0s at least"},
			rows:   []string{ofA, "2 1 b taking -", "3 1 b owned >5m", ofC},
		},
		"a pod is paused, and no pod gives its partitions out": {
			change: func(n *snapshot) { n.abstain("b") },
			finds:  []string{"partitionNotTaken 2-3 b"},
			warns:  []string{"pod b with id 1 works on no partitions"},
		},
		"a strict pod waits for the Lease of a pod that is gone": {
			change: func(n *snapshot) {
				n.locksPartitions("b", placement.Of(3))
				n.edit("b", func(p *pod) { p.Receipt.Strict = true })
				n.leases.held = map[int]store.Lease{7: lease(7, "gone", n.now)}
			},
			notes: []string{"the Lease of id 7 is that of pod gone"},
		},
		"work on a partition does not stop": {
			change: func(n *snapshot) {
				n.changed = rowAt
				n.stored().Owners = placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 5), 2: placement.Set{}}
				n.locksPartitions("b", placement.Between(2, 5))
				n.locksPartitions("c", placement.Set{})
			},
			finds: []string{"partitionNotStopped 4-5 b"},
			says:  []string{"another id is to have partitions 4-5 for 10m0s at least, and the work of pod b on them goes on"},
		},
		"partitions are asked for, and the pods run without": {
			change: func(n *snapshot) { n.forget() },
			finds:  []string{"partitionUnused  "},
			says:   []string{"asks for 6 partitions, and no pod that has an id works on partitions. Start idalloc in the pods with --partitions"},
		},
		"partitions on the way to another id": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of()
				n.stored().Owners[1] = placement.Between(2, 5)
				n.locksPartitions("c", placement.Of())
				n.locksPartitions("b", placement.Between(2, 4))
				n.written = n.now
			},
			rows: []string{ofA, ofB, "4 1 b stopping -", "5 1 b taking -"},
		},
		"a process that keeps what it has, because it cannot know when work has stopped": {
			change: func(n *snapshot) {
				n.stored().Owners[1], n.stored().Owners[2] = placement.Between(2, 5), placement.Of()
				n.locksPartitions("c", placement.Of())
				n.locksPartitions("b", placement.Between(2, 5))
				n.edit("b", func(p *pod) { p.Receipt.HandsOver = false })
			},
			rows: []string{ofA, "2-5 1 b owned >5m"},
		},
		"values that make no sense": {
			change: func(n *snapshot) {
				n.owner.Wish = assignment.DecodeWish(map[string]string{
					assignment.PartitionCountKey: "many", assignment.PartitionStrategyKey: "Best!", assignment.PartitionFailoverAfterKey: "soon", assignment.PartitionTargetKey: "0-3",
				})
			},
			finds: []string{keysWrong, keysWrong, keysWrong, keysWrong},
			says: []string{
				`annotation idalloc.dev/partition-count: not a number: "many": this value counts as absent`, "partition-strategy: not the name", "not a duration", "partition-target",
			},
		},
		"another count is wanted": {
			change: func(n *snapshot) { n.owner.Wish.Count = 9 },
			finds:  []string{pending},
			says:   []string{"asks for 9, and 6 is in force. The next pod that plans takes it over"},
		},
		"a target for an id that there is not": {
			change: func(n *snapshot) {
				n.stored().Strategy, n.owner.Wish.Strategy = placement.NameExternal, placement.NameExternal
				n.owner.Wish.Target = placement.Owners{0: placement.Between(0, 1), 7: placement.Between(2, 3)}
			},
			warns: []string{"annotation idalloc.dev/partition-target gives partitions 2-3 to id 7", "the count is 3"},
		},
		"another strategy is wanted": {
			change: func(n *snapshot) { n.owner.Wish.Strategy = placement.NameRange },
			finds:  []string{pending},
			says:   []string{"asks for range, and sticky is in force. The next pod that plans"},
		},
		"no strategy is wanted any more": {
			change: func(n *snapshot) { n.stored().Strategy = placement.NameRange },
			finds:  []string{pending},
			says:   []string{"asks for sticky, and range is in force"},
		},
		"a strategy is wanted that this version does not know": {
			change: func(n *snapshot) { n.owner.Wish.Strategy = "stickier" },
			finds:  []string{"partitionStrategy  "},
			says:   []string{"asks for strategy stickier, which this idalloc does not know, and sticky is in force until"},
		},
		"a program's own strategy": {
			change: func(n *snapshot) { n.owner.Wish.Strategy, n.stored().Strategy = "by-tenant", "by-tenant" },
			warns:  []string{"strategy by-tenant is in force, which this idalloc does not know"},
		},
		"nothing is in force yet": {
			change: func(n *snapshot) {
				n.forget()
				for name := range n.pods {
					n.locksPartitions(name, placement.Set{})
				}
			},
			finds: []string{pending},
			says:  []string{"asks for 6, and none is in force"},
		},
		"the keys are gone": {
			change: func(n *snapshot) { n.unwanted() },
			warns:  []string{`annotation idalloc.dev/partition-count of Deployment/worker is gone, and 6 partitions stay in force`},
		},
		"the owners were damaged": {
			change: func(n *snapshot) {
				n.owner.Record.Problems = []assignment.ProblemError{{Key: assignment.PartitionOwnersKey, Detail: "not the owners"}}
				n.owner.Record.State.Row = nil
			},
			finds: []string{"damaged  "},
			says:  []string{"annotation idalloc.dev/partition-owners: not the owners: it counts as absent"},
		},
		"the owners were removed": {
			change: func(n *snapshot) { n.owner.Record.State.Row = nil },
			finds:  []string{pending, "partitionsChanged  "},
			says:   []string{"does not say who owns which partitions although pods lock some"},
			rows:   []string{ofA, ofB, ofC},
		},
		"a receipt that cannot be read": {
			change: func(n *snapshot) { n.damage(1) },
			finds:  []string{"damagedReceipt  b"},
			rows:   []string{ofA, "2-3 1 b taking -", ofC},
		},
		"more ids than partitions": {
			change: func(n *snapshot) {
				n.owner.Wish.Count, n.stored().Count = 2, 2
				for id, name := range []string{"a", "b", "c"} {
					n.stored().Owners[id] = placement.Between(id, min(id, 1))
					n.locksPartitions(name, n.stored().Owners[id])
				}
			},
			notes: []string{"3 ids for 2 partitions, so 1 or more ids have none"},
		},
		"no replicas": {
			change: func(n *snapshot) {
				n.owner.Count = 0
				clear(n.pods)
				n.owner.Record.State.Slots = assignment.Slots{}
				clear(n.stored().Owners)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := dividedPods()
			if tc.change != nil {
				tc.change(&n)
			}
			r := reported(n)
			found := make([]string, 0, len(r.Findings))
			details := make([]string, 0, len(r.Findings))
			for _, f := range r.Findings {
				found = append(found, string(f.Kind)+" "+f.Partitions+" "+f.Pod)
				details = append(details, f.Detail)
			}
			filled(t, slices.Concat(details, r.Warnings, r.Notes)...)
			slices.Sort(found)
			if !slices.Equal(found, tc.finds) || r.OK != (len(tc.finds) == 0) {
				t.Errorf("it finds %q, want %q: %q", found, tc.finds, details)
			}
			saysAll(t, "findings", details, tc.says)
			saysAll(t, "warnings", r.Warnings, tc.warns)
			saysAll(t, "notes", r.Notes, tc.notes)
			if len(tc.warns) == 0 && len(r.Warnings) > 0 || len(tc.notes) == 0 && len(r.Notes) > 0 {
				t.Errorf("it warns %q and notes %q", r.Warnings, r.Notes)
			}
			if tc.rows != nil {
				if got := tableRows(t, n.partitionView(), n.now); !slices.Equal(got, tc.rows) {
					t.Errorf("the table has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.rows, "\n"))
				}
			}
		})
	}
}

// unwanted removes the user's annotations.
func (n *snapshot) unwanted() { n.owner.Wish = assignment.DecodeWish(nil) }

// forget makes the workload one that never worked on partitions, whatever the user wants.
func (n *snapshot) forget() {
	n.owner.Record.State.Row = nil
	for name := range n.pods {
		n.abstain(name)
	}
}

// saysAll checks that each part is in one of the sentences.
func saysAll(t *testing.T, what string, sentences, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !slices.ContainsFunc(sentences, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("the %s do not say %q: %q", what, part, sentences)
		}
	}
}

// tableRows returns the lines of the table without the headings, each with single blanks.
func tableRows(t *testing.T, v PartitionView, now time.Time) []string {
	t.Helper()
	if len(v.Ranges) == 0 {
		return []string{v.None()}
	}
	var b bytes.Buffer
	if err := PartitionColumns().Write(&b, v.Rows(now), false, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return lines
}

func TestAReportCountsPartitions(t *testing.T) {
	n := dividedPods()
	n.locksPartitions("b", placement.Between(1, 2)) // 1 is locked twice, 3 not at all
	var b bytes.Buffer
	r := reported(n)
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	if want := "live pods hold 3 of 3 ids, 0 wait; they lock 4 of 6 partitions\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("it says %q, want at the end %q", b.String(), want)
	}
	if reported(settledPods(3)).Partitions != nil {
		t.Error("a workload without partitions has a number of them")
	}
}

func TestTheWideTableOfPartitions(t *testing.T) {
	n := dividedPods()
	n.edit("b", func(p *pod) { p.node = "node-2" })
	var b bytes.Buffer
	if err := PartitionColumns().Write(&b, n.partitionView().Rows(n.now), true, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PARTITIONS   ID   POD   STATE   FOR   NODE\n", "2-3          1    b     owned   >5m   node-2\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table is\n%swant %q", b.String(), want)
		}
	}
}
