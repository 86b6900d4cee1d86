package inspect

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// elsewhere gives a pod a receipt of the owner's ReplicaSet.
func (n snapshot) elsewhere(name string, state receipt.State) {
	n.unlock(name)
	n.edit(name, func(p *pod) {
		p.elsewhere = receipt.Receipt{UID: p.UID, Owner: "ReplicaSet/worker-5d9", State: state, Share: receipt.Share{ID: 4}}
	})
}

// bar makes the owner a StatefulSet whose ordinals begin at 1 now, and whose pod worker-3 has waited for this long.
func (n *snapshot) bar(since time.Duration) {
	n.owner.Kind, n.now = store.StatefulSet, time.Unix(1000, 0)
	clear(n.pods)
	for ordinal := range 4 {
		p := n.add("worker-" + number(ordinal))
		if ordinal < 3 {
			n.name(ordinal, p.Name)
			n.lock(p.Name, ordinal)
		}
		n.edit(p.Name, func(p *pod) { p.Ordinal, p.controller = ordinal-1, n.owner.Name }) // worker-0 has proposal.NoOrdinal
	}
	n.edit("worker-3", func(p *pod) { p.Receipt, p.written = waiting(), n.now.Add(-since) })
}

// ask has a pod z ask pod b for its id. That was written this long ago.
func (n *snapshot) ask(since time.Duration) {
	n.now = time.Unix(1000, 0)
	n.written = n.now.Add(-since)
	n.handOver()
	n.add("z")
	n.edit("z", func(p *pod) { p.Receipt = waiting() })
	n.owner.Record.State.Handover = assignment.Slots{1: "z"}
}

func TestPodsOfOthersAndPodsThatDoNotGoOn(t *testing.T) {
	checkAll(t, map[string]checked{
		"a pod of the owner works under another one": {
			change: func(n *snapshot) { n.elsewhere("b", receipt.Locks) },
			want:   []brief{{OtherOwner, -1, "b"}},
			says:   []string{"pod b is a pod of Deployment/worker, and its receipt for ReplicaSet/worker-5d9 says that it works under id 4", "kubectl delete pod b -n shop"},
		},
		"a pod of the owner waits at another one, and an id is free": {
			change: func(n *snapshot) { n.elsewhere("b", receipt.Waits); delete(n.owner.Record.State.Slots, 1) },
			want:   []brief{{OtherOwner, -1, "b"}},
			says:   []string{"its receipt for ReplicaSet/worker-5d9 says that it waits"},
		},
		"a pod of the owner has given its id up at another one, and does not come here": {
			change: func(n *snapshot) {
				n.now = time.Unix(1000, 0)
				n.elsewhere("b", receipt.GaveUp)
				n.edit("b", func(p *pod) { p.written = n.now.Add(-startsWithin) })
				delete(n.owner.Record.State.Slots, 1)
			},
			want: []brief{{Stranded, -1, "b"}},
			says: []string{"pod b is a pod of Deployment/worker. It gave its id of ReplicaSet/worker-5d9 up 1m0s ago", "perhaps the Role"},
		},
		"a pod of the owner has just given its id up at another one": {
			change: func(n *snapshot) {
				n.now = time.Unix(1000, 0)
				n.elsewhere("b", receipt.GaveUp)
				n.edit("b", func(p *pod) { p.written = n.now.Add(-time.Second) })
				delete(n.owner.Record.State.Slots, 1)
			},
		},
		"a pod of another workload with the same labels works there": {change: func(n *snapshot) {
			n.add("z")
			n.elsewhere("z", receipt.Locks)
			n.edit("z", func(p *pod) { p.controller, p.template = "canary-7c4", "7c4" })
		}},
		"annotations that were copied from another workload": {
			change: func(n *snapshot) {
				n.wipe()
				n.owner.Record = assignment.Record{Present: true, State: assignment.State{Slots: assignment.Slots{0: "other-a", 1: "other-b", 2: "other-c"}}}
				n.copied = "other-a"
				for _, name := range []string{"a", "b", "c"} {
					n.unlock(name)
				}
			},
			want: []brief{{Copied, -1, "other-a"}},
			says: []string{"pod other-a", "is not a pod of Deployment/worker", "copied", "idalloc.dev/assignment-"},
		},
		"a pod without a controller works for another workload with the same labels": {change: func(n *snapshot) {
			n.add("z")
			n.elsewhere("z", receipt.Locks)
			n.edit("z", func(p *pod) { p.controller = "" })
		}},
		"all pods of the owner work under another one": {
			change: func(n *snapshot) {
				n.wipe()
				for name := range n.pods {
					n.elsewhere(name, receipt.Locks)
				}
			},
			want: []brief{{OtherOwner, -1, "a"}, {OtherOwner, -1, "b"}, {OtherOwner, -1, "c"}},
		},
		"a holder that was relabelled": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Owned = false }) },
			want:   []brief{{Foreign, 1, "b"}},
			says:   []string{"pod b is not a pod of Deployment/worker (its labels are not those", "its receipt locks id 1", "kubectl delete pod b -n shop"},
		},
		"a pod of another workload locks an id": {
			change: func(n *snapshot) { n.edit("b", func(p *pod) { p.controller, p.template = "canary-7c4", "7c4" }) },
			want:   []brief{{Foreign, 1, "b"}},
			says:   []string{"its controller is canary-7c4"},
		},
		"a pod waits, and no pod of a StatefulSet ends": {
			change: func(n *snapshot) { n.bar(time.Minute) },
			want:   []brief{{Barred, -1, "worker-3"}},
			says: []string{
				"pod worker-3 has waited for an id for 1m0s", "(worker-0, worker-1, worker-2)", "worker-0 has no place in the workload any more",
				"run `kubectl delete pod worker-0 -n shop`",
			},
		},
		"a pod waits for a moment": {change: func(n *snapshot) { n.bar(time.Second) }},
		"a pod waits for one that ends": {change: func(n *snapshot) {
			n.bar(time.Minute)
			n.edit("worker-2", func(p *pod) { p.Terminating, p.Deadline = true, n.now })
		}},
		"a pod waits for a hand-over": {change: func(n *snapshot) {
			n.bar(time.Minute)
			n.owner.Record.State.Handover = assignment.Slots{0: "worker-3"}
		}},
		"a pod does not give the id that it is asked for": {
			change: func(n *snapshot) { n.ask(6 * time.Minute) },
			want:   []brief{{NotStopped, 1, "b"}},
			says:   []string{"pod b was asked for id 1 6m0s ago at least", "pod z waits for it", "its work goes on"},
		},
		"a pod was asked for its id as long ago as a drain may take": {change: func(n *snapshot) { n.ask(5 * time.Minute) }},
		"a pod that is asked for its id ends": {change: func(n *snapshot) {
			n.ask(6 * time.Minute)
			n.edit("b", func(p *pod) { p.Terminating, p.Deadline = true, n.now })
		}},
		"a pod does not leave an id above the count": {
			change: func(n *snapshot) { n.owner.Count = 2; n.now, n.changed = time.Unix(1000, 0), time.Unix(600, 0) },
			want:   []brief{{NotMoved, 2, "c"}},
			says:   []string{"the count has been 2 for 6m40s at least, and the work of pod c under id 2 goes on"},
		},
		"a condemned pod does not leave an id above the count": {change: func(n *snapshot) {
			n.owner.Count = 2
			n.now, n.changed = time.Unix(1000, 0), time.Unix(600, 0)
			n.edit("c", func(p *pod) { p.Condemned = true })
		}},
	})
}
