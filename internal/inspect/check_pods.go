package inspect

import (
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// checkPods finds pods of the owner with a receipt for another one, and pods of others with a receipt for this one.
func (c *checker) checkPods() {
	for _, name := range c.names() {
		switch p := c.pods[name]; {
		case !p.live() || c.left(p):
		case c.stranger(p) && p.Receipt.Slot() >= 0:
			c.findf(Foreign, p.Receipt.Slot(), name, "pod %s is not a pod of %s (%s), and its receipt locks id %d of it: nobody else gets the id as long as the pod lives, because it may act under it; "+
				"see who made or relabelled the pod; when nothing acts in it any more, run %s", name, c.owner, c.strangeness(p), p.Receipt.Slot(), c.deletion(name))
		case c.strays(p) && p.elsewhere.State == receipt.Locks:
			c.otherOwnerf(p, fmt.Sprintf("locks id %d of %s, so that it works there", p.elsewhere.Share.ID, p.elsewhere.Owner))
		case c.strays(p) && p.elsewhere.State == receipt.Waits:
			c.otherOwnerf(p, "says that it waits for an id of "+p.elsewhere.Owner)
		case c.strays(p) && p.elsewhere.State == receipt.GaveUp && !p.Terminating && !p.written.IsZero() && c.now.Sub(p.written) >= startsWithin:
			c.findings = append(c.findings, Finding{Kind: OtherOwner, Pod: name, Detail: fmt.Sprintf(
				"pod %s is a pod of %s; it gave its id of %s up %s ago, and has not come here: see its log; perhaps the Role of its account does not permit this workload",
				name, c.owner, p.elsewhere.Owner, c.now.Sub(p.written).Round(time.Second))})
		}
	}
}

// checkGrace warns of pods with an id that an ordinary deletion deletes by force.
func (c *checker) checkGrace() {
	var graceless []string
	for _, name := range c.names() {
		if p := c.pods[name]; p.live() && p.graceless && p.Receipt.Slot() >= 0 && !p.Receipt.Strict {
			graceless = append(graceless, name)
		}
	}
	if len(graceless) > 0 {
		c.warnf("terminationGracePeriodSeconds: 0 of pods %s makes each deletion of them a force delete, also that of a rolling update, so that two pods may act under one id: "+
			"take it out of the pod template, or use strict mode", few(graceless))
	}
}

func (c *checker) otherOwnerf(p pod, does string) {
	c.findings = append(c.findings, Finding{Kind: OtherOwner, Pod: p.Name, Detail: fmt.Sprintf(
		"pod %s is a pod of %s, and its receipt %s: idalloc in the pod stops its work there and claims an id here, within seconds; if it stays, see its log, and run %s",
		p.Name, c.owner, does, c.deletion(p.Name))})
}

// stranger reports whether the pod is not one of the owner's.
func (n snapshot) stranger(p pod) bool { return !p.Owned || n.another(p) }

// strays reports whether a pod of the owner has a receipt for another one. Of a pod without a controller nobody can tell whose it is.
func (n snapshot) strays(p pod) bool {
	return p.elsewhere.State != receipt.None && p.controller != "" && !n.stranger(p)
}

// strangeness says why a pod is not one of the owner's.
func (n snapshot) strangeness(p pod) string {
	if !p.Owned {
		return "its labels are not those that the workload selects"
	}
	return "its controller is " + p.controller
}

// checkBarred finds pods that wait although no pod with an id ends. A rolling update of a Deployment, in which pods wait as a rule, has a
// check of its own.
func (c *checker) checkBarred() {
	if c.owner.Rolls() {
		return
	}
	holders, condemned, barred := c.lasting()
	if !barred {
		return
	}
	advice := "delete one that is not needed"
	if len(condemned) > 0 {
		advice = fmt.Sprintf("%s has no place in the workload any more, and Kubernetes may end it only when this one is Ready: run %s", condemned[0], c.deletion(condemned[0]))
	}
	for _, p := range c.waiters() {
		_, asks := c.state.Handover.Of(p.Name)
		if waits := c.now.Sub(p.written); p.sign() && c.claims(p) && !p.gaveUp() && !asks && !p.written.IsZero() && waits >= startsWithin {
			c.findings = append(c.findings, Finding{Kind: Waits, Pod: p.Name, Detail: fmt.Sprintf("pod %s has waited for an id for %s, and cannot get one: "+
				"live pods have all %d ids, and none of them ends (%s): %s", p.Name, waits.Round(time.Second), c.owner.Count, few(holders), advice)})
		}
	}
}

// lasting returns the pods that have the ids, and those of them without an ordinal although the workload gives ordinals. barred says that there
// is a pod for each id, and that none of them ends.
func (c *checker) lasting() (holders, condemned []string, barred bool) {
	ordinals := false
	for _, p := range c.pods {
		ordinals = ordinals || p.Owned && p.Ordinal != proposal.NoOrdinal
	}
	for id := range c.owner.Count {
		name, locks := c.holder(id)
		p := c.pods[name]
		if !locks || p.Terminating {
			return nil, nil, false
		}
		holders = append(holders, name)
		if ordinals && p.Owned && p.Ordinal == proposal.NoOrdinal {
			condemned = append(condemned, name)
		}
	}
	return holders, condemned, c.owner.Count > 0
}
