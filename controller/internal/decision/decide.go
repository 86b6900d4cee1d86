package decision

import (
	"cmp"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Decide returns everything that should be done.
func Decide(w World) Decision {
	v := newView(w)
	if w.Owner.Frozen != "" {
		v.wait()
		return v.d
	}
	in := v.input()
	v.d.Plan = proposal.Plan(in)
	v.next = w.Owner.State
	if v.d.Plan.Next == nil && len(in.State.Handover) < len(v.next.Handover) {
		v.d.Plan.Next = &in.State
	}
	if v.d.Failing = v.failing(); v.d.Failing && w.Rests || w.Keeps {
		v.d.Plan.Next = nil
	}
	if v.d.Plan.Next != nil {
		v.next = *v.d.Plan.Next
		v.ids = inverse(v.next.Slots)
	}
	v.turns()
	for i := range v.pods {
		v.step(v.pods[i])
	}
	slices.SortStableFunc(v.d.Propose, func(a, b Propose) int { return cmp.Compare(a.rank, b.rank) })
	if v.all || len(v.d.Only) > mostOnly || len(w.Former) > 0 {
		v.d.Only = nil
	}
	v.doubles()
	forced := len(v.d.Remove)
	v.remove()
	if v.replace(); w.Keeps { // no pod would get their ids
		v.d.Remove = v.d.Remove[:forced]
	}
	v.probe()
	v.d.List, v.d.Verify = w.Unlisted && v.d.Plan.Next != nil, len(v.d.Remove) > 0 && !w.Verified
	v.wait()
	v.later()
	return v.d
}

// mostOnly is how many slots T3 lists by their labels. Above that, it lists all.
const mostOnly = 64

// step decides the next step for one pod. It ignores pods that take for themselves.
func (v *view) step(p *pod) {
	switch {
	case p.Agent:
		v.agent(p)
	case !p.Assigned:
	case p.anothers():
	case !p.begun && p.byProcess(): // a user added the label to the pod
	case p.Receipt.State == receipt.Unreadable && !p.begun:
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	case p.begun && (!p.locked || p.Hidden):
		v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: p.id, Under: v.under(p).String(), Begun: true, Token: p.token, Number: p.machine()})
	case p.begun && p.Receipt.Begun:
		v.publish(p)
	case p.locked:
		v.confirm(p)
	case p.canTake() && p.Receipt.State != receipt.GaveUp:
		if id, ok := v.proposed(p); ok && !v.w.Keeps && !v.rests(id) {
			v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: id, Under: v.space.String(), Number: v.number(p, id)})
		}
	}
}
