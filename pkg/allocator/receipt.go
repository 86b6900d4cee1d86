package allocator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// ownPod is this process's pod, and the receipt on it.
type ownPod struct {
	server *connection
	pod    *metav1.PartialObjectMetadata // as last read or written by this process
	// wrote says that the receipt on the pod was written by this process.
	wrote bool
}

// receipt returns this pod's receipt for its owner, nil without a readable one.
func (p *ownPod) receipt() *assignment.Receipt {
	// Beside an error there is a receipt only if nothing but its epoch is bad.
	r, _ := assignment.ReceiptOf(p.pod.Annotations, string(p.pod.UID), p.server.ref.String(), assignment.AnyTime())
	return r
}

// gaveUp reports whether this pod began to give a slot away. Then it may take one only from a write of its own.
func (p *ownPod) gaveUp() bool {
	r := p.receipt()
	return r != nil && r.GaveUp
}

// noYields returns the receipt to write when the pod loses its slot: next, unless the pod yields partitions. A planner may have seen that
// it yields them, and be about to give them to another id. So the pod may take a slot only after a write of its own, as if it had given one.
func (p *ownPod) noYields(next *assignment.Receipt) *assignment.Receipt {
	r := p.receipt()
	if r == nil || r.Yields.Empty() {
		return next
	}
	return &assignment.Receipt{UID: r.UID, Owner: r.Owner, GaveUp: true, Failed: next.Failures()}
}

// noSlotReceipt is the receipt of a pod that has no slot and gives none: nil, unless there are failures to remember.
func (p *ownPod) noSlotReceipt() *assignment.Receipt {
	if failed := p.receipt().Failures(); failed > 0 {
		return &assignment.Receipt{UID: string(p.pod.UID), Owner: p.server.ref.String(), Waits: true, Failed: failed}
	}
	return nil
}

// showLife writes a receipt that says that this pod's program runs, unless there is a receipt already. Only a pod that does not get
// a slot at once needs it.
func (p *ownPod) showLife(ctx context.Context) error {
	if p.receipt() != nil {
		return nil
	}
	return p.writeReceipt(ctx, &assignment.Receipt{UID: string(p.pod.UID), Owner: p.server.ref.String(), Waits: true})
}

// writeReceipt makes next the receipt on this pod, whatever it is now, and repeats until it
// knows that next is there. Errors: ErrPodGone, *store.ForbiddenError, or ctx's.
func (p *ownPod) writeReceipt(ctx context.Context, next *assignment.Receipt) error {
	return p.server.persist(ctx, "write the receipt", func() error { return p.swapReceipt(ctx, next) })
}

// errLateReceipt means that an earlier process of this pod wrote the receipt after this one had read it.
var errLateReceipt = errors.New("idalloc: an earlier process of this pod wrote its receipt late")

// firstReceipt is writeReceipt for a receipt that was made from the one on this pod. Before this process has written any, an earlier
// process of the pod may still write: that it gives the slot, or that it yields partitions. Then the error is errLateReceipt, and this
// process has read what that one wrote.
func (p *ownPod) firstReceipt(ctx context.Context, next *assignment.Receipt) error {
	found := p.receiptText()
	return p.server.persist(ctx, "write the receipt", func() error {
		if now := p.receiptText(); !p.wrote && now != found && now != next.Encode() {
			return errLateReceipt
		}
		return p.swapReceipt(ctx, next)
	})
}

// learn reads this pod again if a list showed another receipt on it than this process knows: an earlier process of the pod wrote late. If
// that is so the error is errLateReceipt. What this process wrote itself it knows: nobody else's removal makes it forget that it gave a slot.
func (p *ownPod) learn(ctx context.Context, listed *assignment.Receipt) error {
	known := p.receipt()
	if listed == nil || (known != nil && (p.wrote || listed.Encode() == known.Encode())) {
		return nil
	}
	found := p.receiptText()
	if err := p.readPod(ctx); err != nil {
		return err
	}
	if p.receiptText() == found {
		return nil // this process reads it in another way than the planner
	}
	return errLateReceipt
}

// receiptText returns the receipt without the white space that tells two writes of it apart.
func (p *ownPod) receiptText() string {
	return strings.TrimSpace(p.pod.Annotations[assignment.ReceiptKey])
}

// swapReceipt tries once to make next the receipt. If that fails because there is another one, it reads this pod again.
func (p *ownPod) swapReceipt(ctx context.Context, next *assignment.Receipt) error {
	p.server.markBusy()
	written, err := p.server.store.SwapReceipt(ctx, p.pod, next, !p.wrote)
	if err == nil {
		p.pod, p.wrote = written, true
		return nil
	}
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrAmbiguous) {
		if err := p.readPod(ctx); err != nil {
			return err
		}
	}
	return p.gone(err)
}

// readPod reads this pod again. Errors: ErrPodGone, or as of store.GetPod.
func (p *ownPod) readPod(ctx context.Context) error {
	pod, err := p.server.store.GetPod(ctx, p.server.ref.Namespace, p.server.name)
	if err != nil {
		return p.gone(err)
	}
	if pod.UID != p.pod.UID {
		return p.gone(store.ErrGone)
	}
	p.pod = pod
	return nil
}

func (p *ownPod) gone(err error) error {
	if errors.Is(err, store.ErrGone) {
		return fmt.Errorf("%w (%s, UID %s): this process must not act under an id any more and should end", ErrPodGone, p.server.name, p.pod.UID)
	}
	return err
}
