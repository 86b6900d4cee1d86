package receipt

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Where a receipt is.
const (
	// Key is the annotation of a pod that carries its receipt.
	Key = "idalloc.dev/receipt"
	// IDLabel is the label of a pod that locks a slot. Its value is the slot.
	IDLabel = "idalloc.dev/instance-id"
	// OwnerLabel is the label of a pod that locks a slot. Its value says whose slot it is.
	OwnerLabel = "idalloc.dev/owner"
)

const (
	// AssignLabel is the label of a pod that says which program writes its receipt. Without it a process of the pod does.
	AssignLabel = "idalloc.dev/assign"
	// ByController is the value of AssignLabel for idalloc-controller.
	ByController = "controller"
)

// Bounds of what is read.
const (
	// NoID is the id of what has none.
	NoID = -1
	// MaxID is the largest id.
	MaxID = 1<<31 - 2
	// MaxRank is the largest Rank that is read. A larger one would make no difference.
	MaxRank = 1000
	// MaxLength is the length of the longest text that is read. One with all partitions, in the form that takes most bytes, has a third of that.
	MaxLength = 64 << 10
)

// State is what a receipt says of its pod.
type State int

const (
	// None is no receipt, or one that is not of this pod or not for this owner.
	None State = iota
	// Waits says that the pod's program runs and waits for a slot.
	Waits
	// GaveUp says that the pod has given its slot up. It takes nothing before it waits again.
	GaveUp
	// Locks says that the pod locks a slot, and perhaps partitions.
	Locks
	// Unreadable says that another program damaged the receipt. It locks the slot of its label and every partition.
	Unreadable
)

// Share is a slot with partitions.
type Share struct {
	// ID is the slot, or NoID.
	ID int
	// Of is how many partitions there are. It is 0 if the id is none of those that divide them: then work on Partitions has not stopped yet.
	Of         int
	Partitions placement.Set
}

// Nothing is no slot and no partition.
func Nothing() Share { return Share{ID: NoID} }

// Empty reports whether s has no slot.
func (s Share) Empty() bool { return s.ID == NoID }

// Equal reports whether s and t are the same.
func (s Share) Equal(t Share) bool {
	return s.ID == t.ID && s.Of == t.Of && s.Partitions.Equal(t.Partitions)
}

// Covers reports whether s has all that t has.
func (s Share) Covers(t Share) bool {
	return t.Empty() || s.ID == t.ID && t.Partitions.Subset(s.Partitions)
}

// Within returns what of s is in t, too. Partitions of another id are not.
func (s Share) Within(t Share) Share {
	if s.ID != t.ID {
		return Nothing()
	}
	return Share{ID: s.ID, Of: min(s.Of, t.Of), Partitions: s.Partitions.Intersect(t.Partitions)}
}

// Receipt is what a pod says about itself.
type Receipt struct {
	// UID is that of the pod that wrote the receipt. Owner is "Kind/name", or "Kind.group/name" of a further kind, without a UID: a receipt stays valid when its owner is deleted
	// and created again.
	UID, Owner string
	State      State
	// Share is what the receipt locks, Nothing unless State is Locks. An Unreadable one has the slot of its label.
	Share Share
	// Write is a new random text for each write, so that no two receipts of a pod have the same bytes.
	Write string
	// Rank says how willingly slots are given to the pod: 0 if it never gave one up, 1 if it did, and more if its program failed, one more
	// for each failure in a row.
	Rank int
	// HandsOver says that other pods may ask this one for its slot, because it can tell when its work has stopped.
	HandsOver bool
	// Strict says that a Lease holds the slot beside the receipt.
	Strict bool
	// Begun says that the controller let the pod's program begin under this lock. Only the pod's end frees the slot then.
	Begun bool
	// Token is the fencing token of the slot, and Tokens are those of the partitions. Its pod notes them when it holds what it locks, so a pod
	// that also locks it came later. Token is 0 before, and in strict mode.
	Token  int64
	Tokens []identity.Share
}

// Failures returns how often in a row the pod's program ended by itself soon after it had got a slot.
func (r Receipt) Failures() int { return max(0, r.Rank-1) }

// Locked reports whether the receipt locks something, even if it cannot be read what.
func (r Receipt) Locked() bool { return r.State == Locks || r.State == Unreadable }

// Slot returns the slot that the receipt locks, or NoID.
func (r Receipt) Slot() int {
	if !r.Locked() {
		return NoID
	}
	return r.Share.ID
}

// LocksSlot reports whether the receipt locks this slot.
func (r Receipt) LocksSlot(id int) bool { return r.Locked() && r.Share.ID == id }

// LocksOf returns which of these partitions the receipt locks.
func (r Receipt) LocksOf(set placement.Set) placement.Set {
	switch r.State {
	case Locks:
		return r.Share.Partitions.Intersect(set)
	case Unreadable:
		return set
	case None, Waits, GaveUp:
	}
	return placement.Set{}
}

// Draw returns a value for Write that was never there.
func Draw() string {
	return strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // it has to differ, not to be secret
}

type wire struct {
	UID        string  `json:"uid"`
	Owner      string  `json:"owner"`
	ID         *int    `json:"id,omitempty"`
	Partitions *string `json:"partitions,omitempty"`
	GaveUp     bool    `json:"gaveUp,omitempty"`
	Rank       int     `json:"rank,omitempty"`
	HandsOver  bool    `json:"handsOver,omitempty"`
	Strict     bool    `json:"strict,omitempty"`
	Begun      bool    `json:"begun,omitempty"`

	Token  int64            `json:"token,omitempty"`
	Tokens map[string]int64 `json:"tokens,omitempty"`

	Write string `json:"write"`
}

// of stands between the partitions and their number.
const of = " of "

// Encode returns the text of the annotation. An Unreadable receipt has none.
func (r Receipt) Encode() string {
	w := wire{UID: r.UID, Owner: r.Owner, GaveUp: r.State == GaveUp, Rank: r.Rank, HandsOver: r.HandsOver, Strict: r.Strict, Begun: r.Begun, Write: r.Write}
	if r.State == Locks {
		w.ID = &r.Share.ID
		if r.Share.Of > 0 || !r.Share.Partitions.Empty() {
			set := r.Share.Partitions.String() + of + strconv.Itoa(r.Share.Of)
			w.Partitions = &set
		}
		w.Token, w.Tokens = r.Token, make(map[string]int64, len(r.Tokens))
		for _, s := range r.Tokens {
			w.Tokens[s.Set.String()] = s.Token
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("idalloc: a receipt of strings and numbers does not encode: %v", err))
	}
	return string(b)
}

// Kept returns the text. For one that is too long to be read it returns another one that cannot be read either, and that differs if the text differs.
func Kept(text string) string {
	if len(text) <= MaxLength {
		return text
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return fmt.Sprintf("%d bytes, hash %016x", len(text), h.Sum64())
}

// Parse reads the text of the annotation. It ignores fields that it does not know. The error says what is wrong; then the receipt has no more
// than UID and Owner, if these can be read.
func Parse(text string) (Receipt, error) {
	if len(text) > MaxLength {
		return Receipt{}, fmt.Errorf("a receipt of %d bytes", len(text))
	}
	var w wire
	err := json.Unmarshal([]byte(text), &w)
	names := Receipt{UID: w.UID, Owner: w.Owner}
	if err != nil {
		return names, fmt.Errorf("not a receipt: %s", quote(text))
	}
	r := Receipt{
		UID: w.UID, Owner: w.Owner, State: Waits, Share: Nothing(), Write: w.Write, Rank: min(max(w.Rank, 0), MaxRank), HandsOver: w.HandsOver, Strict: w.Strict,
		Begun: w.Begun,
	}
	switch {
	case w.UID == "" || w.Owner == "":
		return names, fmt.Errorf("a receipt without uid or owner: %s", quote(text))
	case w.ID != nil && (*w.ID < 0 || *w.ID > MaxID):
		return names, fmt.Errorf("a receipt for id %d", *w.ID)
	case w.ID != nil && w.GaveUp:
		return names, fmt.Errorf("a receipt that both locks and gave up: %s", quote(text))
	case w.GaveUp:
		r.State = GaveUp
	case w.ID != nil:
		r.State, r.Share.ID = Locks, *w.ID
		if err := r.readPartitions(w.Partitions); err != nil {
			return names, err
		}
		r.readTokens(w)
	}
	return r, nil
}

// readTokens reads what the pod has noted. What makes no sense says nothing.
func (r *Receipt) readTokens(w wire) {
	sane := func(token int64) bool { return token > 0 }
	if !sane(w.Token) {
		return
	}
	r.Token = w.Token
	rest := r.Share.Partitions
	for _, text := range slices.Sorted(maps.Keys(w.Tokens)) {
		set, err := placement.Parse(text, placement.MaxCount)
		if set = set.Intersect(rest); err != nil || set.Empty() || !sane(w.Tokens[text]) {
			continue
		}
		r.Tokens, rest = append(r.Tokens, identity.Share{Set: set, Token: w.Tokens[text]}), rest.Minus(set)
	}
}

func (r *Receipt) readPartitions(text *string) error {
	if text == nil {
		return nil
	}
	set, number, _ := strings.Cut(*text, of)
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > placement.MaxCount {
		return fmt.Errorf("not partitions%sa number of them: %s", of, quote(*text))
	}
	r.Share.Of = n
	if r.Share.Partitions, err = placement.Parse(set, placement.MaxCount); err != nil {
		return err
	}
	return nil
}

// ErrUnreadable says that another program damaged a receipt.
var ErrUnreadable = errors.New("the receipt cannot be read")

// Of returns what a pod says about itself to this owner ("Kind/name"). A receipt that was copied from another pod, or that is for another
// owner, says nothing, whatever else it has. The error is nil or wraps ErrUnreadable; then the receipt is Unreadable.
func Of(pod metav1.Object, owner string) (Receipt, error) {
	r, err := Anywhere(pod)
	if r.Owner != "" && r.Owner != owner {
		return Receipt{Share: Nothing()}, nil
	}
	return r, err
}

// Anywhere returns what a pod says about itself, whichever owner that is for. Of says what the error is.
func Anywhere(pod metav1.Object) (Receipt, error) {
	text, there := pod.GetAnnotations()[Key]
	if !there {
		return Receipt{Share: Nothing()}, nil
	}
	r, err := Parse(text)
	switch {
	case r.UID != "" && r.UID != string(pod.GetUID()):
		return Receipt{Share: Nothing()}, nil
	case err != nil:
		r.State, r.Share.ID = Unreadable, labelled(pod)
		return r, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return r, nil
}

// Elsewhere returns what the pod locks of another owner than this one.
func Elsewhere(pod metav1.Object, owner string) Receipt {
	r, err := Parse(pod.GetAnnotations()[Key])
	if err != nil || r.State != Locks || r.UID != string(pod.GetUID()) || r.Owner == owner {
		return Receipt{Share: Nothing()}
	}
	return r
}

// labelled returns the slot that the pod's label says, or NoID.
func labelled(pod metav1.Object) int {
	id, err := strconv.Atoi(pod.GetLabels()[IDLabel])
	if err != nil || id < 0 || id > MaxID {
		return NoID
	}
	return id
}

// quote returns text for an error.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q and %d bytes more", text[:most], len(text)-most)
	}
	return strconv.Quote(text)
}
