package inspect

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// leases are the owner's Leases (strict mode).
type leases struct {
	// held are those that somebody has or had, by slot.
	held map[int]store.Lease
	// denied says why they could not be listed, nil if they could.
	denied error
}

// readLeases lists the owner's Leases. It is no error that this is forbidden.
func readLeases(ctx context.Context, s *store.Store, ref store.Ref) (leases, error) {
	var all leases
	err := s.EachLease(ctx, ref, func() { all.held = map[int]store.Lease{} }, func(l store.Lease) {
		if l.Holder != "" {
			l.Receipt = receipt.Receipt{} // it may be long, and nothing here reads it
			all.held[l.ID] = l
		}
	})
	if apierrors.IsForbidden(err) {
		all.denied = err
		return all, nil
	}
	return all, err
}

// ends returns when the Lease counts no more, by the clock of its holder. A pod that waits for it finds that out by its own clock.
func ends(l store.Lease) time.Time { return l.Renewed.Add(l.Outlasts()) }

// LeaseRow is what is known of the Lease of a slot (strict mode).
type LeaseRow struct {
	// Pod is the name of the pod that has the Lease. Gone says that no live pod of that name and UID exists.
	Pod  string `json:"pod"`
	Gone bool   `json:"gone,omitempty"`
	// Renewed is the holder's time at the last renewal. Ends is when the Lease counts no more if it is not renewed.
	Renewed metav1.Time `json:"renewed"`
	Ends    metav1.Time `json:"ends"`
}

// lease returns the Lease of a slot, nil if nobody has it.
func (n snapshot) lease(id int) *LeaseRow {
	l, held := n.leases.held[id]
	if !held {
		return nil
	}
	return &LeaseRow{Pod: l.Pod, Gone: !n.lives(l), Renewed: metav1.NewTime(l.Renewed), Ends: metav1.NewTime(ends(l))}
}

// lives reports whether the pod that has the Lease lives.
func (n snapshot) lives(l store.Lease) bool {
	p, exists := n.pods[l.Pod]
	return exists && p.live() && p.UID == l.Holder
}

// strict reports whether the receipt of a live pod says that it is in strict mode.
func (n snapshot) strict() bool {
	for _, p := range n.pods {
		if p.live() && p.Receipt.Strict {
			return true
		}
	}
	return false
}

// bars says that the Lease of a slot is another pod's than the one of this name, and counts still. It is empty if that is not so.
func (n snapshot) bars(id int, name string) string {
	l, held := n.leases.held[id]
	if !held || l.Pod == name && n.lives(l) || !ends(l).After(n.now) {
		return ""
	}
	state := n.death(l.Pod)
	switch {
	case state == "" && !n.lives(l):
		state = "an earlier pod of that name"
	case state == "":
		state = "alive"
	}
	return fmt.Sprintf("the Lease of id %d is that of pod %s (%s) and counts until %s, by its renewTime", id, l.Pod, state, ends(l).UTC().Format(time.RFC3339))
}

// checkLeases tells of Leases that keep ids from pods, of pods that do not renew theirs, and that Leases could not be listed.
func (c *checker) checkLeases() {
	if c.leases.denied != nil && c.strict() {
		c.notes = append(c.notes, fmt.Sprintf("verify could not look at the Leases of strict mode: %v", c.leases.denied))
	}
	for id, l := range c.leases.held {
		name, locks := c.holder(id)
		p := c.pods[name]
		switch bars := c.bars(id, name); {
		case locks && p.UID == l.Holder && p.Receipt.Strict && !c.overdue(p) && !ends(l).After(c.now):
			c.warnf("pod %s has not renewed the Lease of id %d since %s: it has no contact with the API server, and its work has stopped by its own clock (strict mode)",
				name, id, l.Renewed.UTC().Format(time.RFC3339))
		case bars != "" && !c.lives(l):
			c.notes = append(c.notes, bars+": another strict pod takes the id after that")
		}
	}
}
