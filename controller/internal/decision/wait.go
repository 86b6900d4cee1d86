package decision

import (
	"cmp"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// wait adds the pods without an id, and why they wait, to the decision.
func (v *view) wait() {
	for _, p := range v.pods {
		if p.Assigned && !p.begun || v.listens(p) && !v.has(p) {
			v.d.Waits = append(v.d.Waits, Wait{Pod: p.Name, Since: p.Created, Reason: v.reason(p)})
		}
	}
}

// later sets After to the next time at which the decision changes although nothing happens: a Ready pod becomes available, a grace period ends, or the count or
// a rolling update has been stable for long enough.
func (v *view) later() {
	at := []time.Time{v.quietAt, v.turnAt}
	for _, r := range v.d.Rests {
		at = append(at, r.Until)
	}
	for _, p := range v.pods {
		if p.Terminating {
			at = append(at, p.Deadline, p.LostAt)
		} else {
			at = append(at, p.AvailableAt)
		}
	}
	for _, at := range at {
		if left := at.Sub(v.w.Now); left > 0 {
			v.d.After = cmp.Or(min(v.d.After, left), left)
		}
	}
}

// reason returns why the pod waits. For an agent it must seldom change, because each change is a write.
func (v *view) reason(p *pod) Reason {
	o := v.w.Owner
	_, proposed := v.proposed(p)
	switch {
	case p.Terminating:
		return ReasonTerminating
	case o.Frozen != "":
		return ReasonFrozen
	case p.Agent && v.d.Plan.TooLarge != nil:
		return ReasonFull
	case p.Agent && v.current(p) && v.stuck():
		return ReasonKept
	case p.Agent && v.current(p) && v.d.Plan.HandOver.Older > 0:
		return ReasonRollout
	case p.Agent:
		return ReasonSlots
	case gateReason(p) != "":
		return gateReason(p)
	case p.Refused:
		return ReasonRefused
	case p.Receipt.State == receipt.Locks || proposed:
		return v.takes(p)
	case v.d.Plan.TooLarge != nil:
		return ReasonFull
	case !o.Replaces || !o.Blocks && !v.evicts || !v.current(p):
		return ReasonSlots
	case o.Paused:
		return ReasonPaused
	case o.Limit <= 0:
		return ReasonNever
	case v.stuck():
		return ReasonKept
	case v.kept:
		return ReasonSlots
	case v.crowded && len(v.d.Rests) > 0: // what is not available waits for an id that rests
		return ReasonRests
	case v.crowded:
		return ReasonUnavailable
	}
	return ReasonRollout
}

// gateReason returns what about the pod's own gates or annotations keeps it from getting an id, or "".
func gateReason(p *pod) Reason {
	switch {
	case p.OtherGates:
		return ReasonGates
	case p.Gated && p.Newer:
		return ReasonContract
	case p.Gated && p.BadNumber:
		return ReasonNumber
	case !p.Gated || p.Placed:
		return ReasonNoGate
	}
	return ""
}

// takes returns why a pod has not got the id that it locks or that the map proposes to it.
func (v *view) takes(p *pod) Reason {
	id, _ := v.holds(p)
	if slices.ContainsFunc(v.d.Rests, func(r Rest) bool { return r.ID == id }) {
		return ReasonRests
	}
	return ReasonTaking
}

// stuck reports whether the rolling update cannot continue by itself: no pod of an older revision hands its id over, may be removed, or ends. A lost pod does
// none of these, and no other strategy would help with it.
func (v *view) stuck() bool {
	o, h := v.w.Owner, v.d.Plan.HandOver
	older := func(p *pod) bool {
		_, has := v.holds(p)
		return has && !v.current(p) && !p.Lost(v.w.Now)
	}
	return slices.ContainsFunc(v.pods, older) && o.Replaces && o.Blocks && !o.Paused && (v.kept || o.Limit <= 0) && h.Older > 0 && h.Able == 0 && h.UnderWay == 0
}
