package decision

import "slices"

// confirm does T3 and the next step for a pod with a lock that has not begun.
func (v *view) confirm(p *pod) {
	lock, shown := v.byPod[p.Name]
	switch {
	case p.Terminating:
	case !p.begun && v.unfit(p):
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	case p.Hidden: // T3 would never show it
		v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: p.id, Under: v.space.String(), Number: p.machine()})
	case !v.answered(p):
		v.confirms(p)
	case !shown || lock.UID != p.UID || lock.Text != p.Text:
		// The known state of the pod is old. An event with the new state will come.
	case v.bySlot[p.id] > 1 && p.begun && (v.withdraw(p) || v.doubled(p)):
	case v.bySlot[p.id] > 1 && p.begun:
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseClashes})
	case v.bySlot[p.id] > 1, v.shared(p) && !p.begun:
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	default:
		words, token := v.published(p, lock.Version)
		v.d.Begin = append(v.d.Begin, Begin{Pod: p.Name, ID: p.id, Under: v.under(p).String(), Token: token, Number: p.machine(), Gated: p.Gated && !p.begun, Published: words})
	}
}

// unfit reports whether a pod that has not begun should not begin with its lock: the slot or the owner has changed, the pod's writes are refused while slots are
// scarce, or it lacks its machine number.
func (v *view) unfit(p *pod) bool {
	return p.id >= v.w.Owner.Count || !p.canTake() || v.under(p) != v.space || p.Refused && v.spare() < 0 || p.FirstNumber > 0 && p.machine() == 0
}

// confirms asks for T3 of the pod's lock. Locks of the same slot are found by label, but locks of the same partitions are not.
func (v *view) confirms(p *pod) {
	if v.d.Confirm = true; p.Agent && p.Receipt.Share.SlotAlone() {
		v.d.Only = append(v.d.Only, p.Receipt.Share.ID)
	} else {
		v.all = true
	}
}

// answered reports whether T3 covered everything that the pod locks. A list for one slot shows no locks of partitions.
func (v *view) answered(p *pod) bool {
	return v.w.Locks != nil && v.covered && (v.w.Asked == nil || p.Agent && p.Receipt.Share.SlotAlone() && slices.Contains(v.w.Asked, p.Receipt.Share.ID))
}

// withdraw reports whether all other pods that lock the pod's slot have not begun. These withdraw or end, and then the pod is confirmed.
func (v *view) withdraw(p *pod) bool {
	others := 0
	for _, q := range v.pods {
		if lock, shown := v.byPod[q.Name]; shown && q.Assigned && !q.begun && !q.byProcess() && lock.Text == q.Text && !lock.Receipt.Begun && lock.Receipt.LocksSlot(p.id) {
			others++
		}
	}
	return v.bySlot[p.id] == 1+others
}
