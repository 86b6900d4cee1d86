package assignment

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Receipt is what a pod writes about its slot on itself: a lock on that slot; or, with GaveUp, the
// note that it began to give its slot away; or, with Waits, that its program runs and has no slot.
type Receipt struct {
	// UID is the pod's own. A receipt with another UID came with a copied pod and is none.
	UID string
	// Owner is "Kind/name": receipts outlive a re-created owner.
	Owner string
	// ID and Epoch are the slot and the owner's epoch when it was taken. Zero with GaveUp, unless Gives, and with Waits.
	ID    int
	Epoch int64
	// HandsOver says that the pod can know that its work has stopped, so it may be asked for its slot.
	HandsOver bool
	// FenceAfter is the pod's own fence-after, zero without strict mode. It tells a planner that strict
	// mode is in use even when somebody removed the owner's annotations. It is negative where somebody
	// made it unreadable.
	FenceAfter time.Duration
	// GaveUp says that the slot is being given away. Such a receipt locks nothing.
	GaveUp bool
	// Gives says, with GaveUp, that ID is that slot: whoever plans may take the pod's entry for it out, and it
	// is not given to the pod before the pod itself has taken this back.
	Gives bool
	// Waits says that the pod's program runs and waits for a slot, while there are not enough. Such a receipt
	// locks nothing either: it is a sign of life.
	Waits bool
	// Failed counts how often in a row the pod's program ended by itself soon after it took a slot.
	Failed int
}

// Failures returns Failed, 0 without a receipt.
func (r *Receipt) Failures() int {
	if r == nil {
		return 0
	}
	return r.Failed
}

// Locks reports whether there is a receipt that locks its slot.
func (r *Receipt) Locks() bool { return r != nil && !r.GaveUp && !r.Waits }

type receiptWire struct {
	UID        string `json:"uid"`
	Owner      string `json:"owner"`
	ID         *int   `json:"id,omitempty"`
	Epoch      int64  `json:"epoch,omitempty"`
	HandsOver  bool   `json:"handsOver,omitempty"`
	FenceAfter string `json:"fenceAfter,omitempty"`
	GaveUp     bool   `json:"gaveUp,omitempty"`
	Gives      *int   `json:"gives,omitempty"`
	Waits      bool   `json:"waits,omitempty"`
	Failed     int    `json:"failed,omitempty"`
}

// Encode returns the canonical form of the annotation.
func (r Receipt) Encode() string {
	w := receiptWire{UID: r.UID, Owner: r.Owner, GaveUp: r.GaveUp, Waits: r.Waits && !r.GaveUp, Failed: r.Failed}
	if r.GaveUp && r.Gives {
		w.Gives = &r.ID
	}
	if r.Locks() {
		w.ID, w.Epoch, w.HandsOver = &r.ID, r.Epoch, r.HandsOver
		if r.FenceAfter != 0 {
			w.FenceAfter = r.FenceAfter.String()
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("idalloc: a receipt of strings and numbers does not encode: %v", err))
	}
	return string(b)
}

// maxFailed bounds what is read of Receipt.Failed: more makes no difference.
const maxFailed = 1000

// ErrBadEpoch means that the receipt names its slot, but its epoch cannot be one of ours.
var ErrBadEpoch = errors.New("idalloc: bad epoch")

// ParseReceipt reads a receipt. Fields that it does not know are left to a newer idalloc. With
// ErrBadEpoch the receipt is returned all the same, with epoch 0: it still locks its slot, because a
// clock that is wrong, here or there, must not free a slot that is in use.
func ParseReceipt(text string, now time.Time) (Receipt, error) {
	var w receiptWire
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return Receipt{}, fmt.Errorf("not a receipt: %s", quote(text))
	}
	if w.UID == "" || w.Owner == "" {
		return Receipt{}, fmt.Errorf("a receipt without uid or owner: %s", quote(text))
	}
	failed := min(max(w.Failed, 0), maxFailed)
	if w.GaveUp {
		r := Receipt{UID: w.UID, Owner: w.Owner, GaveUp: true, Failed: failed}
		if w.Gives != nil && *w.Gives >= 0 && *w.Gives <= MaxID {
			r.ID, r.Gives = *w.Gives, true
		}
		return r, nil
	}
	if w.Waits {
		return Receipt{UID: w.UID, Owner: w.Owner, Waits: true, Failed: failed}, nil
	}
	if w.ID == nil {
		return Receipt{}, fmt.Errorf("a receipt without id: %s", quote(text))
	}
	if *w.ID < 0 || *w.ID > MaxID {
		return Receipt{}, fmt.Errorf("a receipt for id %d", *w.ID)
	}
	r := Receipt{UID: w.UID, Owner: w.Owner, ID: *w.ID, Epoch: w.Epoch, HandsOver: w.HandsOver, Failed: failed}
	if w.FenceAfter != "" {
		var err error
		if r.FenceAfter, err = ParseFenceAfter(w.FenceAfter); err != nil {
			r.FenceAfter = -1 // the owner's annotation still has it, and the pod writes its receipt again
		}
	}
	if err := CheckEpoch(w.Epoch, now); err != nil {
		r.Epoch = 0
		return r, fmt.Errorf("%w: a receipt whose %w", ErrBadEpoch, err)
	}
	return r, nil
}

// ErrForeignReceipt means that the receipt is readable but not this pod's for this owner.
var ErrForeignReceipt = errors.New("idalloc: the receipt is another pod's or another owner's")

// ReceiptOf reads the receipt that a pod with this UID holds for owner ("Kind/name") from its
// annotations. It returns nil without an error when there is none, and a receipt with ErrBadEpoch. now is the later of the
// clock and the owner's clean epoch.
func ReceiptOf(annotations map[string]string, uid, owner string, now time.Time) (*Receipt, error) {
	text, ok := annotations[ReceiptKey]
	if !ok {
		return nil, nil //nolint:nilnil // no receipt is an ordinary answer
	}
	r, err := ParseReceipt(text, now)
	switch {
	case err != nil && !errors.Is(err, ErrBadEpoch):
		return nil, err
	case r.UID != uid || r.Owner != owner:
		return nil, ErrForeignReceipt
	}
	return &r, err
}
