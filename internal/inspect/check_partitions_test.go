package inspect

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// rowAt is when the owners of the partitions of a test were written, and the map.
var rowAt = time.UnixMilli(1795219200000) //nolint:gochecknoglobals // a constant that Go cannot express

// dividedPods returns settledPods(3), which work on six partitions: a on 0-1, b on 2-3, c on 4-5. All was written ten minutes ago, and
// the receipts five minutes ago.
func dividedPods() snapshot {
	n := settledPods(3)
	n.now = rowAt.Add(10 * time.Minute)
	n.owner.PartitionTrust = assignment.Clean
	n.owner.Wish = assignment.Wish{Count: 6, HasCount: true, FailoverAfter: 30 * time.Second}
	n.owner.Record.State.Epoch = rowAt.UnixMilli()
	n.owner.Record.State.Partitions = &assignment.Partitions{Count: 6, Strategy: placement.NameSticky, Owners: placement.Owners{}, Epoch: rowAt.UnixMilli()}
	for id, name := range []string{"a", "b", "c"} {
		set := placement.Between(2*id, 2*id+1)
		n.stored().Owners[id] = set
		n.edit(name, func(p *pod) { p.Receipt.Partitions, p.written = &set, rowAt.Add(5*time.Minute) })
	}
	return n
}

func (n snapshot) stored() *assignment.Partitions { return n.owner.Record.State.Partitions }

// locksPartitions has the receipt of a pod lock other partitions.
func (n snapshot) locksPartitions(name string, set placement.Set) {
	n.edit(name, func(p *pod) { p.Receipt.Partitions = &set })
}

// Rows of the table for pods that work on what is theirs, and a finding about no particular partitions or pod.
const (
	ofA, ofB, ofC = "0-1 0 a owned >5m", "2-3 1 b owned >5m", "4-5 2 c owned >5m"
	keysWrong     = "partitionKeys  "
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
				n.stored().Owners, n.stored().Paused = placement.Owners{0: placement.Between(0, 2), 1: {}, 2: placement.Between(3, 5)}, placement.Of(1)
				n.locksPartitions("a", placement.Between(0, 2))
				n.locksPartitions("c", placement.Between(3, 5))
				n.edit("b", func(p *pod) { p.Receipt.Partitions, p.Receipt.Paused = &placement.Set{}, true })
			},
			warns: []string{"pod b with id 1 is paused and works on no partitions, which other ids get: somebody paused it"},
			rows:  []string{"0-2 0 a owned >5m", "3-5 2 c owned >5m", "- 1 b paused >5m"},
		},
		"a pod rests that still has something to stop": {
			change: func(n *snapshot) {
				n.stored().Paused = placement.Of(1)
				n.edit("b", func(p *pod) { p.Receipt.Paused, p.Receipt.Failed = true, 3 })
			},
			warns: []string{"its program failed 3 times in a row"},
			rows:  []string{ofA, "2-3 1 b stopping -", ofC, "- 1 b paused >5m"},
		},
		"no partitions": {
			change: func(n *snapshot) { n.unwanted(); n.forget() },
			rows:   []string{"Deployment/worker in namespace shop has no partitions: annotation idalloc.dev/partition-count says how many there are to be"},
		},
		"two pods lock a partition": {
			change: func(n *snapshot) { n.locksPartitions("b", placement.Between(1, 3)) },
			finds:  []string{"partitionTwice 1 b"},
			says:   []string{"the receipts of pods a and b name them, and they belong to pod a", "kubectl delete pod b -n shop"},
			rows:   []string{"0 0 a owned >5m", "1 0 a duplicate -", ofB, ofC},
		},
		"two pods lock partitions of a map that somebody else changed": {
			change: func(n *snapshot) {
				n.locksPartitions("b", placement.Between(0, 3))
				n.owner.PartitionTrust = assignment.Foreign
			},
			finds: []string{"changed  ", "partitionTwice 0-1 b"},
			says:  []string{"neither works on them before one lets go", "the pods restore it"},
			rows:  []string{"0-1 - a duplicate -", ofB, ofC},
		},
		"a pod locks a partition of another id's, which does not lock it": {
			change: func(n *snapshot) {
				n.locksPartitions("a", placement.Of(0))
				n.locksPartitions("b", placement.Between(1, 3))
			},
			finds: []string{"partitionMismatch 1 b"},
			says:  []string{"pod b locks partitions 1, and the map does not give them to it", "kubectl delete pod b -n shop"},
			rows:  []string{"0 0 a owned >5m", "1 0 b stopping -", ofB, ofC},
		},
		"a pod locks a partition of nobody": {
			change: func(n *snapshot) { n.stored().Owners[2] = placement.Of(4) },
			finds:  []string{"partitionMismatch 5 c"},
			rows:   []string{ofA, ofB, "4 2 c owned >5m", "5 - c stopping -"},
		},
		"partitions of nobody for ten minutes": {
			change: func(n *snapshot) { n.stored().Owners[2] = placement.Of(4); n.locksPartitions("c", placement.Of(4)) },
			finds:  []string{"partitionUnowned 5 "},
			says:   []string{"for 10m0s at least, by the epoch of the map"},
			rows:   []string{ofA, ofB, "4 2 c owned >5m", "5 - - nobody >10m"},
		},
		"partitions of nobody for a moment, as far as verify can see": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.now = rowAt.Add(30 * time.Second)
			},
			warns: []string{"partitions 5 belong to nobody, for 30s at least"},
		},
		"partitions of nobody while others wait for ever": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.owner.Wish.FailoverAfter = -1
			},
			finds: []string{"partitionUnowned 5 "},
		},
		"partitions of nobody beside a quarantine": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.owner.Record.State.Quarantine = assignment.Quarantine{{From: 7, To: 7, Epoch: 100}}
			},
			warns: []string{"strict mode gives out no partition of nobody"},
		},
		"a clock that is behind the epoch": {
			change: func(n *snapshot) {
				n.stored().Owners[2] = placement.Of(4)
				n.locksPartitions("c", placement.Of(4))
				n.now = rowAt.Add(-time.Hour)
			},
			warns: []string{"for 0s at least"},
			rows:  []string{"0-1 0 a owned >0s", "2-3 1 b owned >0s", "4 2 c owned >0s", "5 - - nobody >0s"},
		},
		"an id that no pod has, for ten minutes": {
			change: func(n *snapshot) { n.free(2) },
			finds:  []string{"partitionUnowned 4-5 "},
			says:   []string{"belong to id 2, which no pod has, for 10m0s at least", "after 30s"},
			rows:   []string{ofA, ofB, "4-5 2 - waiting >10m"},
		},
		"an id that no pod has, for a moment": {
			change: func(n *snapshot) { n.free(2); n.now = rowAt.Add(time.Second) },
			warns:  []string{"belong to id 2, which no pod has, for 1s at least, by the epoch of the map: its next holder gets them; otherwise other ids do, after 30s"},
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
		"an id in quarantine": {
			change: func(n *snapshot) {
				n.free(2)
				n.owner.Record.State.Quarantine = assignment.Quarantine{{From: 2, To: 2, Epoch: 100}}
			},
			warns: []string{"belong to id 2, which is in quarantine"},
		},
		"a member without partitions that no pod has": {
			change: func(n *snapshot) {
				n.stored().Owners[1] = placement.Between(2, 5)
				n.locksPartitions("b", placement.Between(2, 5))
				n.stored().Owners[2] = placement.Set{}
				n.free(2)
			},
		},
		"a holder that does not work on partitions": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Receipt.Partitions = nil }) },
			finds:  []string{"partitionWithheld  b"},
			says:   []string{"has an id below the count: b: a rolling update", `set annotation idalloc.dev/partition-count to "0"`},
			rows:   []string{ofA, "2-3 1 b waiting -", ofC},
		},
		"no pod works on partitions yet": {
			change: func(n *snapshot) {
				n.forget()
			},
			finds: []string{"partitionWithheld  a"},
			says:  []string{"a, b, c"},
		},
		"no pod works on partitions, and none are asked for": {
			change: func(n *snapshot) { n.forget(); n.owner.Wish.Count = 0 },
		},
		"a holder that does not lock its partitions yet": {
			change: func(n *snapshot) { n.locksPartitions("b", placement.Set{}) },
			rows:   []string{ofA, "2-3 1 b taking -", ofC},
		},
		"partitions on the way to another id": {
			change: func(n *snapshot) {
				n.stored().Owners[0], n.stored().Owners[2] = placement.Between(0, 1), placement.Of()
				n.stored().Owners[1] = placement.Between(2, 5)
				n.locksPartitions("c", placement.Of())
				n.locksPartitions("b", placement.Between(2, 4))
				n.edit("b", func(p *pod) { p.Receipt.Yields = placement.Of(5) })
			},
			rows: []string{ofA, ofB, "4 1 b stopping -", "5 1 b yielded >5m"},
		},
		"a process that keeps what it has": {
			change: func(n *snapshot) {
				n.stored().Owners[1], n.stored().Owners[2] = placement.Between(2, 5), placement.Of()
				n.locksPartitions("c", placement.Of())
				n.locksPartitions("b", placement.Between(2, 5))
				n.edit("b", func(p *pod) { p.Receipt.Keeps = true })
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
			finds:  []string{keysWrong},
			says:   []string{"asks for 9 partitions, and 6 are in force: the next pod that plans takes it over"},
		},
		"another strategy is wanted": {
			change: func(n *snapshot) { n.owner.Wish.Strategy = placement.NameRange },
			finds:  []string{keysWrong},
			says:   []string{"asks for strategy range, and sticky is in force: the next pod that plans"},
		},
		"no strategy is wanted any more": {
			change: func(n *snapshot) { n.stored().Strategy = placement.NameRange },
			finds:  []string{keysWrong},
			says:   []string{"asks for strategy sticky, and range is in force"},
		},
		"a strategy is wanted that this version does not know": {
			change: func(n *snapshot) { n.owner.Wish.Strategy = "stickier" },
			finds:  []string{keysWrong},
			says:   []string{"asks for strategy stickier, which this idalloc does not know, and sticky is in force: it stays until"},
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
			finds: []string{keysWrong},
			says:  []string{"asks for 6 partitions, and none are in force"},
		},
		"the keys are gone": {
			change: func(n *snapshot) { n.unwanted() },
			warns:  []string{`annotation idalloc.dev/partition-count of Deployment/worker is gone, and 6 partitions stay in force`},
		},
		"somebody else changed the owners": {
			change: func(n *snapshot) {
				n.owner.PartitionTrust = assignment.Foreign
				n.owner.Annotations = map[string]string{assignment.PartitionOwnersKey: "x", assignment.PartitionSealKey: "x"}
				n.owner.PartitionWriters = []store.Writer{{Manager: "helm", Operation: "Update", Keys: []string{assignment.PartitionOwnersKey}}}
			},
			finds: []string{"changed  "},
			says:  []string{`annotation idalloc.dev/partition-owners was set by field manager "helm" (Update)`},
			rows:  []string{ofA, ofB, ofC},
		},
		"somebody else damaged the owners": {
			change: func(n *snapshot) {
				n.owner.PartitionTrust = assignment.Foreign
				n.owner.Record.Partitions.Problems = []assignment.ProblemError{{Key: assignment.PartitionOwnersKey, Detail: "not the owners"}}
				n.owner.Record.State.Partitions = nil
			},
			finds: []string{"damaged  "},
			says:  []string{"not the owners"},
		},
		"somebody removed the owners": {
			change: func(n *snapshot) {
				n.owner.PartitionTrust, n.owner.Record.State.Partitions = assignment.Absent, nil
			},
			finds: []string{"changed  ", keysWrong},
			says:  []string{"does not say who owns which partitions although pods lock some"},
			rows:  []string{ofA, ofB, ofC},
		},
		"nobody tracks the owners": {
			change: func(n *snapshot) { n.owner.PartitionTrust = assignment.Untracked },
			warns:  []string{"do not say who wrote the owners of the partitions"},
		},
		"the server forgot who wrote the owners": {
			change: func(n *snapshot) {
				n.owner.Trust, n.owner.PartitionTrust, n.owner.Ancient = assignment.Foreign, assignment.Foreign, true
				n.owner.Record.Partitions.Sealed = true
			},
			rows: []string{ofA, ofB, ofC},
		},
		"a newer version wrote the owners": {
			change: func(n *snapshot) {
				n.owner.PartitionTrust, n.owner.Record.Partitions.Newer = assignment.Unreadable, 2
				n.owner.Record.State.Partitions = nil
			},
			warns: []string{"says format 2, and this version knows formats up to 1"},
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
				n.owner.Record.State.Slots, n.owner.Record.State.UIDs = assignment.Slots{}, assignment.Slots{}
				clear(n.stored().Owners)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := dividedPods()
			if tc.change != nil {
				tc.change(&n)
			}
			r := check(n)
			found := make([]string, 0, len(r.Findings))
			details := make([]string, 0, len(r.Findings))
			for _, f := range r.Findings {
				found = append(found, string(f.Kind)+" "+f.Partitions+" "+f.Pod)
				details = append(details, f.Detail)
			}
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
	n.owner.PartitionTrust, n.owner.Record.State.Partitions = assignment.Absent, nil
	for name := range n.pods {
		n.edit(name, func(p *pod) { p.Receipt.Partitions = nil })
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
	var b bytes.Buffer
	if err := v.Table(&b, now, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(v.Ranges) > 0 {
		lines = lines[1:]
	}
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return lines
}

func TestAReportCountsPartitions(t *testing.T) {
	n := dividedPods()
	n.locksPartitions("b", placement.Between(1, 2)) // 1 is locked twice, 3 not at all
	var b bytes.Buffer
	r := check(n)
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	if want := "live pods hold 3 of 3 ids, 0 wait; they work on 4 of 6 partitions\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("it says %q, want at the end %q", b.String(), want)
	}
	if check(settledPods(3)).Partitions != nil {
		t.Error("a workload without partitions has a number of them")
	}
}

func TestTheWideTableOfPartitions(t *testing.T) {
	n := dividedPods()
	n.edit("b", func(p *pod) { p.node = "node-2" })
	var b bytes.Buffer
	if err := n.partitionView().Table(&b, n.now, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PARTITIONS   ID   POD   STATE   FOR   NODE     RECEIPT\n", "2-3          1    b     owned   >5m   node-2   100\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table is\n%swant %q", b.String(), want)
		}
	}
}

// What the server notes of idalloc's own last write counts, not that of a kubelet.
func TestAReceiptIsAsOldAsItsLastWrite(t *testing.T) {
	n := dividedPods()
	at := metav1.NewTime(rowAt)
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &metav1.Time{Time: n.now}},
		{Manager: assignment.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at},
	}
	if got := store.LastWrite(fields); !got.Equal(rowAt) {
		t.Errorf("the last write was at %s, want %s", got, rowAt)
	}
	if got := store.LastWrite(fields[:1]); !got.IsZero() {
		t.Errorf("without a write of its own, the last one was at %s", got)
	}
}
