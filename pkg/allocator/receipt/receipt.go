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

// The annotation and the labels of a receipt.
const (
	// Key is the annotation of a pod that carries its receipt.
	Key = "idalloc.dev/receipt"
	// IDLabel is the label of a pod that locks a slot. Its value is the slot.
	IDLabel = "idalloc.dev/instance-id"
	// OwnerLabel is the label of a pod that locks a slot. Its value names the owner of the slot.
	OwnerLabel = "idalloc.dev/owner"
)

const (
	// AssignLabel is the label of a pod that names the program that writes its receipt. Without it, a process of the pod does.
	AssignLabel = "idalloc.dev/assign"
	// ByController is the value of AssignLabel for idalloc-controller.
	ByController = "controller"
)

// Limits of accepted values.
const (
	// NoID is the id of a share without a slot.
	NoID = -1
	// MaxID is the largest id.
	MaxID = 1<<31 - 2
	// MaxNumber is the largest machine number.
	MaxNumber = 1<<31 - 1
	// MaxFirst is the largest first machine number.
	MaxFirst = 999_999_999
	// MaxRank is the largest accepted Rank. A larger one would make no difference.
	MaxRank = 1000
	// MaxLength is the length of the longest accepted text. The longest form of a receipt with all partitions has a third of that.
	MaxLength = 64 << 10
)

// State is the meaning of a receipt for its pod.
type State int

const (
	// None means that there is no receipt, or it is not of this pod or not for this owner.
	None State = iota
	// Waits means that the pod's program runs and waits for a slot.
	Waits
	// GaveUp means that the pod has given its slot up. It must wait again before it takes one.
	GaveUp
	// Locks means that the pod locks a slot, and perhaps partitions.
	Locks
	// Unreadable means that another program damaged the receipt. It locks the slot of its label and every partition.
	Unreadable
)

// Share is a slot with partitions.
type Share struct {
	// ID is the slot, or NoID.
	ID int
	// Of is the number of partitions. It is 0 if the id is not a member: then work on Partitions has not stopped yet.
	Of         int
	Partitions placement.Set
}

// Nothing returns a share without slot and partitions.
func Nothing() Share { return Share{ID: NoID} }

// Empty reports whether s has no slot.
func (s Share) Empty() bool { return s.ID == NoID }

// SlotAlone reports whether s has no partitions. An id that is no longer a member may still have some.
func (s Share) SlotAlone() bool { return s.Of == 0 && s.Partitions.Empty() }

// Equal reports whether s and t are the same.
func (s Share) Equal(t Share) bool {
	return s.ID == t.ID && s.Of == t.Of && s.Partitions.Equal(t.Partitions)
}

// Covers reports whether s includes all of t.
func (s Share) Covers(t Share) bool {
	return t.Empty() || s.ID == t.ID && t.Partitions.Subset(s.Partitions)
}

// Within returns the part of s that is also in t. Partitions of another id are not.
func (s Share) Within(t Share) Share {
	if s.ID != t.ID {
		return Nothing()
	}
	return Share{ID: s.ID, Of: min(s.Of, t.Of), Partitions: s.Partitions.Intersect(t.Partitions)}
}

// Receipt is the content of a pod's receipt.
type Receipt struct {
	// UID is the UID of the pod that wrote the receipt. Owner is "Kind/name", or "Kind.group/name" of a further kind, without a UID: a receipt stays valid
	// when its owner is deleted and created again.
	UID, Owner string
	State      State
	// Share is what the receipt locks, Nothing unless State is Locks. An Unreadable receipt has the slot of its label.
	Share Share
	// Write is a new random text for each write, so that no two receipts of a pod have the same bytes.
	Write string
	// Rank determines how willingly slots are given to the pod: 0 if it never gave one up, 1 if it did, and more if its program failed, plus one for each
	// failure in a row.
	Rank int
	// HandsOver: other pods may ask this pod for its slot, because it can tell when its work has stopped.
	HandsOver bool
	// Strict: a Lease also holds the slot.
	Strict bool
	// Begun: the controller let the pod's program begin under this lock. From then on, only the end of the pod frees the slot.
	Begun bool
	// Number is the machine number that the receipt of a gated pod locks in addition to its slot, or 0.
	Number int
	// Token is the fencing token of the slot, and Tokens are those of the partitions. The pod notes them when it holds what it locks, so another pod that
	// also locks it came later. Token is 0 before that, and in strict mode.
	Token  int64
	Tokens []identity.Share
}

// Failures returns how often in a row the pod's program ended by itself soon after it had got a slot.
func (r Receipt) Failures() int { return max(0, r.Rank-1) }

// Locked reports whether the receipt locks something, even if it is unreadable.
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

// LocksNumber reports whether the receipt locks this machine number.
func (r Receipt) LocksNumber(number int) bool { return r.Locked() && r.Number == number && number > 0 }

// LocksOf returns the partitions of set that the receipt locks.
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

// Draw returns a value for Write that was never used.
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
	Number     int     `json:"number,omitempty"`

	Token  int64            `json:"token,omitempty"`
	Tokens map[string]int64 `json:"tokens,omitempty"`

	Write string `json:"write"`
}

// of separates the partitions and their number.
const of = " of "

// Encode returns the text of the annotation. An Unreadable receipt has none.
func (r Receipt) Encode() string {
	w := wire{UID: r.UID, Owner: r.Owner, GaveUp: r.State == GaveUp, Rank: r.Rank, HandsOver: r.HandsOver, Strict: r.Strict, Begun: r.Begun, Write: r.Write}
	if r.State == Locks {
		w.ID, w.Number = &r.Share.ID, r.Number
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

// Kept returns the text. For a text that is too long it returns a shorter one that is also unreadable, and that differs if the text differs.
func Kept(text string) string {
	if len(text) <= MaxLength {
		return text
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return fmt.Sprintf("%d bytes, hash %016x", len(text), h.Sum64())
}

// Parse reads the text of the annotation. It ignores unknown fields. After an error, the receipt has at most UID and Owner, if these are readable.
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
	case w.Number < 0 || w.Number > MaxNumber:
		return names, fmt.Errorf("a receipt for machine number %d", w.Number)
	case w.ID != nil && w.GaveUp:
		return names, fmt.Errorf("a receipt that both locks and gave up: %s", quote(text))
	case w.GaveUp:
		r.State = GaveUp
	case w.ID != nil:
		r.State, r.Share.ID, r.Number = Locks, *w.ID, w.Number
		if err := r.readPartitions(w.Partitions); err != nil {
			return names, err
		}
		r.readTokens(w)
	}
	return r, nil
}

// readTokens reads the noted tokens. It ignores invalid ones.
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

// ErrUnreadable means that another program damaged a receipt.
var ErrUnreadable = errors.New("the receipt cannot be read")

// Of returns the pod's receipt for this owner ("Kind/name"). A receipt that was copied from another pod, or that is for another owner, counts as None. The
// error is nil or wraps ErrUnreadable; then the receipt is Unreadable.
func Of(pod metav1.Object, owner string) (Receipt, error) {
	r, err := Anywhere(pod)
	if r.Owner != "" && r.Owner != owner {
		return Receipt{Share: Nothing()}, nil
	}
	return r, err
}

// Anywhere returns the pod's receipt for any owner. Error: as of Of.
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

// Elsewhere returns what the pod locks of owners other than this one.
func Elsewhere(pod metav1.Object, owner string) Receipt {
	r, err := Parse(pod.GetAnnotations()[Key])
	if err != nil || r.State != Locks || r.UID != string(pod.GetUID()) || r.Owner == owner {
		return Receipt{Share: Nothing()}
	}
	return r
}

// labelled returns the slot in the pod's label, or NoID.
func labelled(pod metav1.Object) int {
	id, err := strconv.Atoi(pod.GetLabels()[IDLabel])
	if err != nil || id < 0 || id > MaxID {
		return NoID
	}
	return id
}

// quote shortens and quotes text for an error.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q and %d bytes more", text[:most], len(text)-most)
	}
	return strconv.Quote(text)
}
