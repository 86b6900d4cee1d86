package assignment

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Receipt is what a pod writes about its slot on itself. It is one of three things: a lock on the slot; with GaveUp,
// a note that the pod gives its slot away; or with Waits, a sign of life of a pod without a slot.
type Receipt struct {
	// UID is the UID of the pod that wrote the receipt. If the pod that carries it has another UID, the receipt was
	// copied and does not count.
	UID string
	// Owner is "Kind/name", without a UID: a receipt stays valid when its owner is deleted and created again.
	Owner string
	// ID is the slot. It is 0 with Waits, and with GaveUp unless Gives is set.
	ID int
	// Epoch is the owner's epoch when the pod took the slot. It is 0 with GaveUp and with Waits.
	Epoch int64
	// HandsOver says that other pods may ask this one for its slot, because it can tell when its work has stopped.
	HandsOver bool
	// FenceAfter is the pod's own fence-after, 0 without strict mode. It tells a planner that strict mode is in use
	// even if somebody removed the owner's annotations. It is negative if somebody made it unreadable.
	FenceAfter time.Duration
	// GaveUp says that the pod gives its slot away. Such a receipt locks nothing.
	GaveUp bool
	// Gives is only set with GaveUp. It says that ID is the slot that the pod gives: any planner may remove the
	// pod's entry for it, and nobody gives that slot to the pod until the pod has withdrawn this statement.
	Gives bool
	// Waits says that the pod's program runs and waits, because there are not enough slots. Such a receipt is a sign
	// of life and locks nothing.
	Waits bool
	// Failed counts how often in a row the pod's program ended by itself soon after it took a slot.
	Failed int
	// Partitions are what the pod locks beside its slot. It is nil if the process does not work on partitions.
	Partitions *placement.Set
	// Yields are partitions that the map gives to the pod's id and on which its work has stopped. They are not locked, and
	// nobody gives them to this id until the pod has withdrawn this statement. It is only set with Partitions.
	Yields placement.Set
	// Keeps says that the pod yields nothing, because it cannot know when its work has stopped. It is only set with Partitions.
	Keeps bool
	// Paused says that the pod yields all that it works on and wants none for now. It is only set with Partitions.
	Paused bool
}

// Failures returns Failed, or 0 for a nil receipt.
func (r *Receipt) Failures() int {
	if r == nil {
		return 0
	}
	return r.Failed
}

// Locks reports whether the receipt locks its slot. A nil receipt locks nothing.
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

	Partitions *string `json:"partitions,omitempty"`
	Yields     string  `json:"yields,omitempty"`
	Keeps      bool    `json:"keeps,omitempty"`
	Paused     bool    `json:"paused,omitempty"`
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
		if r.Partitions != nil {
			locked := r.Partitions.String()
			w.Partitions, w.Yields, w.Keeps, w.Paused = &locked, r.Yields.String(), r.Keeps, r.Paused
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("idalloc: a receipt of strings and numbers does not encode: %v", err))
	}
	return string(b)
}

// maxFailed is the largest Receipt.Failed that is read. A larger number would make no difference.
const maxFailed = 1000

// ErrBadEpoch means that the receipt names a slot, but idalloc cannot have written its epoch.
var ErrBadEpoch = errors.New("idalloc: bad epoch")

// ParseReceipt reads a receipt. It ignores unknown fields, which a newer idalloc may have written. It checks the epoch
// against now with CheckEpoch. If that fails, it returns both ErrBadEpoch and the receipt, with epoch 0: the receipt
// still locks its slot, because a wrong clock, on either machine, must not free a slot that is in use.
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
			r.FenceAfter = -1 // the owner's annotation still has the value, and the pod will write its receipt again
		}
	}
	r.readPartitions(w)
	if err := CheckEpoch(w.Epoch, now); err != nil {
		r.Epoch = 0
		return r, fmt.Errorf("%w: a receipt whose %w", ErrBadEpoch, err)
	}
	return r, nil
}

// readPartitions reads what the receipt says of partitions. If somebody made a set unreadable, it counts as empty: the owner
// still says what the pod owns, and the pod will write its receipt again. What is yielded is not locked.
func (r *Receipt) readPartitions(w receiptWire) {
	if w.Partitions == nil {
		return
	}
	set := func(text string) placement.Set {
		s, err := placement.Parse(text, placement.MaxCount)
		if err != nil {
			return placement.Set{}
		}
		return s
	}
	r.Yields, r.Keeps, r.Paused = set(w.Yields), w.Keeps, w.Paused
	locked := set(*w.Partitions).Minus(r.Yields)
	r.Partitions = &locked
}

// ErrForeignReceipt means that the receipt can be read, but belongs to another pod or another owner.
var ErrForeignReceipt = errors.New("idalloc: the receipt is another pod's or another owner's")

// ReceiptOf reads a receipt from the annotations of the pod with this UID, for this owner ("Kind/name"). now is the
// later of two times: the clock, and the epoch of the owner's clean map. ReceiptOf returns nil and no error if there
// is no receipt, ErrForeignReceipt if it belongs to another pod or owner, and, like ParseReceipt, both a receipt and
// ErrBadEpoch.
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
