package heart

import "github.com/idalloc/idalloc/pkg/allocator/receipt"

// wait says why the controller's pods without an id wait.
func (v *view) wait() {
	for _, p := range v.pods {
		if p.Assigned && !p.runs {
			v.d.Waits = append(v.d.Waits, Wait{Pod: p.Name, Since: p.Created, Reason: v.reason(p)})
		}
	}
}

func (v *view) reason(p *pod) Reason {
	o := v.w.Owner
	_, proposed := v.proposed(p)
	switch {
	case p.Terminating:
		return ReasonTerminating
	case p.OtherGates:
		return ReasonGates
	case !p.Gated || p.Placed:
		return ReasonNoGate
	case p.Receipt.State == receipt.Locks || proposed:
		return ReasonTaking
	case v.d.Plan.TooLarge != nil:
		return ReasonFull
	case !o.Replaces || !o.Blocks || !v.current(p) || v.kept:
		return ReasonSlots
	case o.Paused:
		return ReasonPaused
	case o.Limit <= 0:
		return ReasonNever
	case v.crowded:
		return ReasonUnavailable
	}
	return ReasonRollout
}
