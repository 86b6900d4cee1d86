package reconciler

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/peers"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// firstGather and gather are how long ids that should divide partitions are collected before one plan includes them: firstGather if no id owns partitions
	// yet, gather otherwise.
	firstGather, gather = time.Second, 200 * time.Millisecond
	// batch is how many agents get a proposal in one pass. Confirmations of locks do not count, because locks must not wait.
	batch = 4 * inFlight
	// soon is the delay until the next pass, which serves the rest.
	soon = time.Millisecond
)

// agentMemory is what was seen of an owner whose pods have agents. It shows how long pods have waited, and which locks need T3.
type agentMemory struct {
	// receipts are the newest receipts, by the pod's UID. Lost: T3 is repeated for locks whose receipt does not note that they are confirmed, and a pod whose
	// program failed waits again.
	receipts map[string]seenReceipt
	// holders are the pods that lock ids, and since when. Lost: an id waits for GiveBackAfter again before it gets partitions.
	holders map[int]holder
	// vacant are the ids without a pod. Lost: FailoverAfter counts again.
	vacant peers.Vacancies
	// reserved is when a free slot was first left to other pods. joining is when an id first waited for its part of the partitions. Lost: both count again, for
	// seconds.
	reserved, joining time.Time
	// pace draws the random times that pods wait after failures. Lost: other times are drawn.
	pace *pace.Pace
}

// seenReceipt is an agent's newest receipt. settled: an earlier confirmation covers it. failed: since when the pod has waited after this number of failures.
type seenReceipt struct {
	receipt receipt.Receipt
	settled bool
	failed  time.Time
}

type holder struct {
	uid   string
	since time.Time
}

// see records an agent's receipt, and adds to q what the memory knows about it. If left is positive, the answer changes after that time.
func (m *agentMemory) see(q *decision.Pod, now time.Time) (left time.Duration) {
	was, there := m.receipts[q.UID]
	is, c := was, q.Proposal.Confirmed
	is.receipt, is.failed = q.Receipt, time.Time{}
	switch {
	case !there:
		is.settled = decision.Noted(q.Receipt)
	case was.receipt.Write != q.Receipt.Write:
		confirmed := was.settled || c != nil && c.Write == was.receipt.Write && !c.Slot && c.Partitions.Empty()
		is.settled = confirmed && decision.Continues(was.receipt, q.Receipt)
	}
	q.Settled = is.settled
	if failures := q.Receipt.Failures(); failures > 0 && q.Receipt.State == receipt.Waits {
		if is.failed = now; was.receipt.Failures() == failures && !was.failed.IsZero() {
			is.failed = was.failed
		}
		left = is.failed.Add(m.pace.StandBack(failures)).Sub(now)
		q.StoodBack = left <= 0
	}
	m.receipts[q.UID] = is
	return left
}

// recall adds what the memory knows to the world. It must run after all pods are read.
func (p *pass) recall() {
	w, m := &p.world, &p.memory.agents
	p.memory.rollout.ends(w, p.metas)
	if !slices.ContainsFunc(w.Pods, func(q decision.Pod) bool { return q.Agent }) {
		*m = agentMemory{}
		return
	}
	if m.receipts == nil {
		m.receipts, m.pace = map[string]seenReceipt{}, pace.New(rand.Float64)
	}
	live := make(map[string]bool, len(w.Pods))
	for i := range w.Pods {
		if q := &w.Pods[i]; q.Agent {
			live[q.UID] = true
			p.requeue(m.see(q, w.Now))
		}
	}
	maps.DeleteFunc(m.receipts, func(uid string, _ seenReceipt) bool { return !live[uid] })
	p.recallPartitions()
	if !m.reserved.IsZero() {
		w.FreeFor = w.Now.Sub(m.reserved)
	}
}

// recallPartitions adds what the memory knows about ids that divide partitions.
func (p *pass) recallPartitions() {
	w, m := &p.world, &p.memory.agents
	holders, idle, joins := map[int]holder{}, map[string]bool{}, false
	owners, wait := placement.Owners{}, firstGather
	if row := w.Owner.State.Row; row != nil && len(row.Owners) > 0 {
		owners, wait = row.Owners, gather
	}
	for i := range w.Pods {
		q := &w.Pods[i]
		if q.Receipt.State != receipt.Locks {
			idle[q.Name] = !q.Receipt.Locked()
			continue
		}
		id := q.Receipt.Share.ID
		if holders[id] = (holder{q.UID, w.Now}); m.holders[id].uid == q.UID {
			holders[id] = m.holders[id]
		}
		_, listed := owners[id]
		joins = joins || q.Receipt.Share.Of > 0 && !listed && id < w.Owner.Count
	}
	m.holders, w.Joins = holders, make(map[int]bool, len(holders))
	for id, h := range holders {
		left := h.since.Add(w.Owner.Wish.GiveBackAfter).Sub(w.Now)
		if _, listed := owners[id]; !listed && id < w.Owner.Count {
			p.requeue(left)
		}
		w.Joins[id] = left <= 0
	}
	since(&m.joining, joins, w.Now)
	if left := m.joining.Add(wait).Sub(w.Now); joins && left > 0 {
		w.Gathers = true
		p.requeue(left)
	}
	after := w.Owner.Wish.FailoverAfter
	m.vacant.See(p.owner, idle, w.Now)
	if at := m.vacant.Next(after, w.Now); !at.IsZero() {
		p.requeue(at.Sub(w.Now))
	}
	if w.Vacant = m.vacant.Over(after, w.Now); p.owner.RollsNow && m.vacant.Any() { // its status says when that is over, and no generation counts that
		p.memory.read = store.Owner{}
		p.requeue(mixedAfter)
	}
}

// planned records how long a free slot has been reserved, and requeues the owner for the times at which the reservation changes.
func (p *pass) planned(d proposal.Decision) {
	m := &p.memory.agents
	if since(&m.reserved, d.Reserved != 0 && m.receipts != nil, p.world.Now); m.reserved.IsZero() {
		return
	}
	for rank := range 3 {
		p.requeue(m.reserved.Add(proposal.Reserved(rank)).Sub(p.world.Now))
	}
}
