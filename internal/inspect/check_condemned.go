package inspect

import (
	"fmt"
	"slices"
)

// checkCondemned finds pods that Kubernetes is to remove from a StatefulSet and cannot. With the policy OrderedReady it removes the one with the
// highest ordinal first, when all other pods are Ready.
func (c *checker) checkCondemned() {
	waits := len(c.lockers) >= c.owner.Count && slices.ContainsFunc(c.waiters(), func(p pod) bool { return !p.Condemned && p.sign() && !p.ready })
	var keep, idle []string
	for _, name := range c.names() {
		switch p := c.pods[name]; {
		case !p.Condemned || !p.live() || p.Terminating || c.another(p):
		case waits && p.Receipt.Locked() && p.Receipt.Slot() < c.owner.Count && !p.Receipt.HandsOver:
			keep = append(keep, name)
		case !p.Receipt.Locked() && p.sign() && !p.ready:
			idle = append(idle, name)
		}
	}
	if len(keep) > 0 {
		c.condemnedf(keep, "keep ids that another pod waits for, and cannot hand them over")
	}
	if len(idle) > 1 && c.settled() >= settlesWithin {
		c.condemnedf(idle, "have no ids, and are not Ready without")
	}
}

func (c *checker) condemnedf(pods []string, why string) {
	c.findings = append(c.findings, Finding{Kind: Stuck, Pod: pods[0], Detail: fmt.Sprintf(
		"%s does not have the ordinals of %s any more, which %s; with the policy OrderedReady Kubernetes removes such a pod only when all others are Ready: "+
			"run %s, and so on for each; Kubernetes does not make them again", c.owner, few(pods), why, c.deletion(pods[0]))})
}
