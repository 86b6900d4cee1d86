package splits

import (
	"encoding/json"
	"strconv"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// known is what a decision depends on, in a form that can be the key of a map.
type known struct {
	owner  owner
	pods   [mostPods]pod
	owns   [mostPods]bool
	frozen bool
	// listed says that T3 was done, and shows what it showed.
	listed bool
	shows  [mostPods]shown
	// proposed is the slot that the map gives to pod.
	pod, proposed int8
}

// shown is what T3 shows of a pod. same says that it has the bytes that are known.
type shown struct {
	locks, same, begun bool
	slot, runs         int8
	under              owner
}

// done is what a decision says of each pod.
type done struct {
	take     [mostPods]owner
	slot     [mostPods]int8
	begin    [mostPods]bool
	withdraw [mostPods]bool
	remove   [mostPods]bool
	confirms bool
	tells    [mostPods]bool
}

func identityOf(o owner) identity.Owner {
	kind := "ReplicaSet"
	if o.deployment() {
		kind = "Deployment"
	}
	return identity.Owner{APIVersion: "apps/v1", Kind: kind, Name: o.String()}
}

func parse(text string) owner {
	for o := depW; o < owners; o++ {
		if identityOf(o).String() == text {
			return o
		}
	}
	panic("decision locks for an owner that does not exist: " + text)
}

func (m *model) decide(k known) done {
	if d, there := m.decided[k]; there {
		return d
	}
	w := decision.World{Owner: decision.Owner{
		Owner: identityOf(k.owner), Namespace: "shop", Count: k.owner.count(), Limit: 1, Replaces: k.owner.deployment(), State: assignment.State{Slots: assignment.Slots{}},
	}}
	if !k.owner.deployment() { // pods above its count are evicted; a rolling update is not in the model
		w.Owner.Revision = k.owner.String()
	}
	if k.frozen {
		w.Owner.Frozen = "another"
	}
	if k.proposed != none {
		w.Owner.State.Slots[int(k.proposed)] = name(int(k.pod))
	}
	for i, p := range k.pods {
		if p.live() && (k.owns[i] || p.lock == k.owner || p.under == k.owner) {
			w.Pods = append(w.Pods, m.podOf(k, i, p))
		}
	}
	if k.listed {
		w.Locks = []decision.Lock{}
		for i, s := range k.shows {
			if s.locks || s.runs != none {
				w.Locks = append(w.Locks, lockOf(i, s))
			}
		}
	}
	d := decision.Decide(w)
	out := done{confirms: d.Confirm}
	index := map[string]int{}
	for i := range k.pods {
		index[name(i)] = i
	}
	for _, t := range d.Take {
		i := index[t.Pod]
		out.take[i], out.slot[i] = parse(t.Under), int8(t.ID) //nolint:gosec // a slot below 3
	}
	for _, b := range d.Begin {
		out.begin[index[b.Pod]] = true
	}
	for _, n := range d.Withdraw {
		out.withdraw[index[n]] = true
	}
	for _, r := range d.Remove {
		out.remove[index[r.Pod]] = true
	}
	for _, p := range d.Propose {
		i := index[p.Pod]
		out.tells[i] = true
		if p.Text != "" {
			out.begin[i] = !p.Next.Confirmed.Slot
			out.withdraw[i] = p.Next.Confirmed.Slot
		} else if !p.Next.Share.Empty() {
			out.take[i], out.slot[i] = parse(p.Next.Owner.String()), int8(p.Next.Share.ID) //nolint:gosec // as above
		}
	}
	m.decided[k] = out
	return out
}

func (m *model) podOf(k known, i int, p pod) decision.Pod {
	q := decision.Pod{
		Pod: proposal.Pod{
			Name: name(i), UID: "uid-" + name(i), Controller: "other", Owned: k.owns[i], Terminating: p.phase == ending, Ordinal: proposal.NoOrdinal,
			Receipt: receipt.Receipt{Share: receipt.Nothing()},
		},
		Assigned: !m.agent(i), Agent: m.agent(i), Gated: p.phase == gated && !m.agent(i), Placed: p.runs(), Ready: p.runs(), Text: "bytes of " + name(i), Version: "7",
	}
	if q.Owned && !k.owner.deployment() {
		q.Controller = k.owner.String()
	}
	if p.lock != nobody {
		q.Under = identityOf(p.lock)
		q.Receipt = receipt.Receipt{Owner: q.Under.String(), State: receipt.Locks, Share: receipt.Share{ID: int(p.slot)}, Begun: p.begun, Token: int64(p.token), Write: "w"}
		if q.Agent && p.lock != k.owner {
			q.Former = q.Receipt
		}
	}
	if q.Agent {
		q.Told, q.Receipt.Begun = p.told, false
		q.Proposal = receipt.Proposal{UID: q.UID, Owner: identityOf(k.owner), Count: k.owner.count(), Share: receipt.Nothing()}
		if p.confirmed {
			q.Proposal.Confirmed = &receipt.Confirmed{Write: "w", Share: q.Receipt.Share}
		}
		return q
	}
	if p.under != nobody && p.runs() {
		is := identity.Identity{State: identity.StateAssigned, ID: int(p.id), Count: 3, Token: int64(p.token), Pod: q.Name, Namespace: "shop", Owner: identityOf(p.under)}
		text, err := json.Marshal(is)
		if err != nil {
			panic(err)
		}
		q.Published = decision.Published{ID: strconv.Itoa(int(p.id)), Count: "3", StartCount: "3", Identity: string(text)}
	}
	return q
}

func lockOf(i int, s shown) decision.Lock {
	l := decision.Lock{Pod: name(i), UID: "uid-" + name(i), Text: "bytes of " + name(i), Version: "6", Runs: int(s.runs), Receipt: receipt.Receipt{Share: receipt.Nothing()}}
	if !s.same {
		l.Text = "other bytes of " + name(i)
	}
	if s.locks {
		l.Receipt = receipt.Receipt{Owner: identityOf(s.under).String(), State: receipt.Locks, Share: receipt.Share{ID: int(s.slot)}, Begun: s.begun}
	}
	return l
}
