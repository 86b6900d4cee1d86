package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// leases are the owner's Leases (strict mode).
type leases struct {
	// held are the Leases that a pod has or had, by slot.
	held map[int]slotlease.Lease
	// denied is why the Leases could not be listed, or nil.
	denied error
	// refused is why the API server refuses renewals, by slot. It covers pods that do not renew their Leases, if they could be tested.
	refused map[int]string
}

// readLeases lists the owner's Leases. If that is forbidden, it sets denied and returns no error.
func readLeases(ctx context.Context, s *store.Store, ref kinds.Ref) (leases, error) {
	var all leases
	err := s.EachLease(ctx, ref, func() { all.held = map[int]slotlease.Lease{} }, func(l slotlease.Lease) {
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

// mostTried limits how many writes of each kind are tested in dry runs: all pods of a workload are refused for the same reason.
const mostTried = 3

// tryRenewals tests by dry runs whether the API server refuses renewals, in the name of the pods that do not renew their Leases. Without permission to
// impersonate them it returns nothing.
func (h *holding) tryRenewals(ctx context.Context, s *store.Store) map[int]string {
	refused := map[int]string{}
	ids := h.unrenewed()
	for _, id := range ids[:min(len(ids), mostTried)] {
		p := h.pods[h.leases.held[id].Pod]
		as, err := h.writer(p).As(s)
		if err != nil {
			break
		}
		l, err := s.GetLease(ctx, h.owner.Ref, id)
		if err != nil || l.Holder != p.UID {
			continue
		}
		err = as.TryLease(ctx, h.owner.Ref, l)
		if forbidden := (*request.ForbiddenError)(nil); errors.Is(err, request.ErrRefused) || errors.As(err, &forbidden) && !strings.Contains(err.Error(), "cannot impersonate") {
			refused[id] = err.Error()
		}
	}
	return refused
}

// unrenewed returns the slots whose holders have not renewed their Leases in time, in order. These holders are fenced.
func (h *holding) unrenewed() (ids []int) {
	for id := range h.leases.held {
		if name, locks := h.holder(id); locks && h.fenced(h.pods[name], id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// fenced reports whether a pod has stopped its work because it did not renew the Lease of its slot in time.
func (h *holding) fenced(p pod, id int) bool {
	l, has := h.leases.held[id]
	return has && p.UID == l.Holder && p.Receipt.Strict && !h.overdue(p) && !ends(l).After(h.now)
}

// ends returns when the Lease expires, by its holder's clock. A pod that waits for it uses its own clock.
func ends(l slotlease.Lease) time.Time { return l.Renewed.Add(l.Outlasts()) }

// LeaseRow is the Lease of a slot (strict mode).
type LeaseRow struct {
	// Pod is the name of the pod that has the Lease. Gone: no live pod with that name and UID exists.
	Pod  string `json:"pod"`
	Gone bool   `json:"gone,omitempty"`
	// Renewed is the holder's time at the last renewal. Ends is when the Lease expires if it is not renewed.
	Renewed metav1.Time `json:"renewed"`
	Ends    metav1.Time `json:"ends"`
}
