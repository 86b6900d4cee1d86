package reconciler

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
	// firstGather is how long ids that are to divide partitions are gathered before one plan divides them, and gather if others do so already.
	firstGather, gather = time.Second, 200 * time.Millisecond
	// batch is how many processes are told something in one pass, beside those whose locks it confirms: locks are not to wait for it.
	batch = 4 * inFlight
	// soon is when the others are told.
	soon = time.Millisecond
)

// agentMemory is what was seen of an owner whose pods have agents. It is about who waits for how long, and which locks need T3.
type agentMemory struct {
	// receipts are the newest ones, by the pod's UID. Lost: T3 is made for locks that do not note that their pods hold them, and a pod whose program failed waits
	// its time again.
	receipts map[string]seenReceipt
	// holders are the pods that lock ids, and since when. Lost: an id waits for GiveBackAfter again before it divides partitions.
	holders map[int]holder
	// vacant are the ids without a pod. Lost: FailoverAfter counts again.
	vacant peers.Vacancies
	// reserved is since when a free slot has been left to other pods, and joining since when an id that is to divide partitions does not yet. Lost: they count
	// again, for seconds.
	reserved, joining time.Time
	// pace draws the times that pods wait after failures. Lost: others are drawn.
	pace *pace.Pace
}

// seenReceipt is the newest receipt of an agent, and whether it is as confirmed as an earlier one. failed is since when its program has waited after this many
// failures.
type seenReceipt struct {
	receipt receipt.Receipt
	settled bool
	failed  time.Time
}

type holder struct {
	uid   string
	since time.Time
}

// see notes what an agent says, and says in it what the memory knows. left is when more is known of it, if that is positive.
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

// recall puts what the memory knows into the world, once all pods are there.
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

// recallPartitions is about the ids that divide partitions.
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

// planned notes what a plan came to.
func (p *pass) planned(d proposal.Decision) {
	m := &p.memory.agents
	if since(&m.reserved, d.Reserved != 0 && m.receipts != nil, p.world.Now); m.reserved.IsZero() {
		return
	}
	for rank := range 3 {
		p.requeue(m.reserved.Add(proposal.Reserved(rank)).Sub(p.world.Now))
	}
}

// propose tells processes what is proposed to them. One that cannot be told yet has no place among those that are.
func (p *pass) propose(ctx context.Context, proposals []decision.Propose) {
	told, rest, all := 0, len(proposals), make([]write, 0, len(proposals))
	for _, b := range proposals {
		w := write{pod: b.Pod, step: stepPropose, says: b.Next.Encode(), do: func(ctx context.Context, pod *podMeta) (*podMeta, error) {
			written, err := p.store.SetProposal(ctx, pod, b.Text, b.Next)
			if was, _ := receipt.ProposalOf(pod); err == nil && was.Confirmed == nil && b.Text != "" && !b.Next.Confirmed.Slot {
				p.metrics.began(p.store.Clock.Now().Sub(pod.CreationTimestamp.Time))
			}
			return written, err
		}}
		if !p.due(w) {
			continue
		}
		if b.Text == "" {
			if told++; told > batch {
				p.requeue(soon)
				break
			}
		}
		if b.CanWait() {
			rest = min(rest, len(all))
		}
		all = append(all, w)
	}
	p.inTurn(ctx, all, min(rest, len(all)))
}

// inTurn tells processes first what cannot wait, and then the rest. Once there is news of the owner, it leaves the rest to the next pass: the news may be
// about an idle partition. It tells a few processes in any case, because news may come without end.
func (p *pass) inTurn(ctx context.Context, all []write, rest int) {
	p.write(ctx, p.slots, all[:rest], nil)
	p.write(ctx, p.slow, all[rest:], func(sent int) bool { return sent >= few && p.memory.news.Load() != p.heard })
}

// pod finds a pod of the world by its name, nil if it is not there.
func (p *pass) pod(name string) *decision.Pod {
	i, there := slices.BinarySearchFunc(p.world.Pods, name, func(q decision.Pod, name string) int { return strings.Compare(q.Name, name) })
	if !there {
		return nil
	}
	return &p.world.Pods[i]
}
