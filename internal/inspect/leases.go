package inspect

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// leases are the owner's Leases (strict mode).
type leases struct {
	// held are those that a pod has or had, by slot.
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
