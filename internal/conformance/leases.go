package conformance

import (
	"slices"
	"time"
)

// lease is a version of a Lease.
type lease struct {
	holder *pod
	locks  []string
	until  time.Duration
}

// needsOfLease returns the conditions for a write of a Lease that makes p the holder. If p is nil, the Lease gets no holder.
func (c *Checker) needsOfLease(s Step, p *pod) []need {
	l := c.leases[s.Lease]
	if l.holder == nil {
		return nil
	}
	if l.holder == p || p == nil && s.At < l.until {
		return []need{{"its work stays locked", !l.holder.worksOn(l.locks, s.Receipt.Locks)}}
	}
	return []need{{"it is free, its own, or expired", s.At >= l.until}, {"the work ends in time", !l.holder.worksOn(l.locks, nil)}}
}

func (c *Checker) secures(s Step, p *pod) {
	l := c.leases[s.Lease]
	if l.holder != nil && (l.holder != p || s.At >= l.until) {
		l.holder.releases(nil)
	}
	if p == nil {
		delete(c.leases, s.Lease)
		return
	}
	c.leases[s.Lease] = lease{p, s.Receipt.Locks, s.Until}
	if p.releases(s.Receipt.Locks); s.Thing != "" { // no other Lease locks this slot
		p.use(s.Thing).leased = true
	}
}

// hasLease reports whether an unexpired Lease locks the thing for the pod.
func (c *Checker) hasLease(p *pod, x string, at time.Duration) bool {
	for _, l := range c.leases {
		if l.holder == p && at < l.until && has(l.locks, x) {
			return true
		}
	}
	return false
}

func (c *Checker) othersLease(p *pod, x string, at time.Duration) bool {
	for _, l := range c.leases {
		if l.holder != p && at < l.until && has(l.locks, x) {
			return true
		}
	}
	return false
}

// releases notes that the pod's Leases lock nothing outside of this list.
func (p *pod) releases(list []string) {
	for _, t := range p.things {
		t.leased = t.leased && has(list, t.name)
	}
}

// worksOn reports whether the pod works on something that a Lease locked before and no longer locks.
func (p *pod) worksOn(before, now []string) bool {
	return slices.ContainsFunc(before, func(x string) bool { return p.thing(x).works && !has(now, x) })
}
