package inspect

import (
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator"
)

// checkRollout finds a rolling update that is stuck. It also warns of one that would become stuck, because it may not stop a pod
// before a new one is Ready.
func (c *checker) checkRollout() {
	if !c.owner.Rolls() || c.owner.Count == 0 {
		return
	}
	rollout := c.owner.Rollout
	keep := c.keepers()
	waiter, stuck := c.stuck()
	switch {
	case stuck:
		c.stuckf(waiter.Name, "pod %s of its current revision waits for an id, Kubernetes ends no old pod before a new one is Ready (%s), and the old pods do not hand theirs over: %s: "+
			"run `kubectl patch deployment %s -n %s -p '{\"spec\":{\"strategy\":{\"rollingUpdate\":{\"maxSurge\":0,\"maxUnavailable\":1}}}}'`, and %s",
			waiter.Name, c.rounded(), few(keep), c.owner.Name, c.owner.Namespace, c.wayOut())
	case c.rollout.overdue != "":
		c.stuckf("", "Kubernetes has seen no progress within the time that it has (%s): see why the pods of the current revision are not available, and repair it, "+
			"or run `kubectl rollout undo deployment/%s -n %s`", c.rollout.overdue, c.owner.Name, c.owner.Namespace)
	case len(keep) == 0:
	case rollout.Blocks():
		c.warnf("a rolling update of %s would wait for ever: %s, so a new pod starts before an old one ends, "+
			"and the id that it waits for cannot be handed over by %s: %s", c.owner, c.rounded(), few(keep), c.wayOut())
	case c.owner.Count >= rollout.BlocksBelow && rollout.BlocksBelow > 1:
		c.warnf("below %d replicas, to which an autoscaler or a hand may scale it, a rolling update of %s would wait for ever: its maxUnavailable, a percentage, is 0 there, "+
			"and the id that a new pod waits for cannot be handed over by %s: %s", rollout.BlocksBelow, c.owner, few(keep), c.wayOut())
	}
}

// wayOut says what to do about a rolling update whose old pods do not hand over.
func (c *checker) wayOut() string {
	if c.evict == never {
		return "or remove annotation " + evictKey + ", so that the controller removes old pods one at a time; for pods that idalloc runs in, " + allocator.WayOut
	}
	return allocator.WayOut
}

func (c *checker) stuckf(pod, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		Kind: Stuck, Pod: pod, Detail: fmt.Sprintf("the rolling update of %s is stuck: ", c.owner) + fmt.Sprintf(format, args...),
	})
}

// rounded explains why maxUnavailable is 0.
func (c *checker) rounded() string {
	return fmt.Sprintf("its maxUnavailable is 0; a percentage of %d replicas is rounded down", c.owner.Count)
}

// keepers returns the names of the pods that do not hand their slots over.
func (c *checker) keepers() []string {
	var keep []string
	for _, lockers := range c.lockers {
		for _, p := range lockers {
			if !p.Receipt.HandsOver && !p.Terminating && !c.gives(p) {
				keep = append(keep, p.Name)
			}
		}
	}
	slices.Sort(keep)
	return keep
}

// stuck reports whether the rolling update cannot go on by itself. waiter is a pod that waits in vain. The update is stuck if
// all of this is true:
//
//   - A pod of the current revision waits, and that revision runs idalloc.
//   - Every id belongs to a live pod that does not hand it over to the waiter.
//   - At least one of these pods is of an older revision.
//   - Kubernetes ends no pod.
//
// A Terminating pod, and a pod without a receipt so far, may still change something.
func (c *checker) stuck() (waiter pod, yes bool) {
	if !c.owner.Rollout.Blocks() || c.endsAnOldPod() {
		return pod{}, false
	}
	if !c.signs()[c.rollout.current] {
		return pod{}, false // pods of the current revision may become Ready without an id
	}
	for _, p := range c.waiters() {
		if p.controller != "" && p.revision == c.rollout.current {
			waiter = p
			break
		}
	}
	older := false
	for id := range c.owner.Count {
		name, locks := c.holder(id)
		p := c.pods[name]
		old := p.revision != c.rollout.current
		if !locks || p.Terminating || old && (p.Receipt.HandsOver || c.gives(p)) {
			return pod{}, false
		}
		older = older || old && p.Owned
	}
	return waiter, older && waiter.Name != ""
}

// endsAnOldPod reports whether Kubernetes ends a pod of an older revision: now, or when the pods of the current revision that
// have an id are available. With maxUnavailable 0, it does so if N other pods are left then.
func (c *checker) endsAnOldPod() bool {
	stay := 0
	for name, p := range c.pods {
		_, named := c.state.Slots.Of(name)
		if p.Owned && p.live() && !p.Terminating && (p.revision != c.rollout.current || p.ready || named) {
			stay++
		}
	}
	return stay > c.owner.Count
}
