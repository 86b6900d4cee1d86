package assignment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxEpoch is the largest integer that every JSON reader keeps exact (2^53 - 1, RFC 8259 section 6).
const MaxEpoch = int64(1)<<53 - 1

// MaxAhead is how far an epoch may be ahead of the clock, unless a clean map contains it. Epochs are Unix times in
// milliseconds, or a little more.
const MaxAhead = 24 * time.Hour

// AnyTime returns the time to pass to Decode and ReceiptOf to accept every epoch up to MaxEpoch.
func AnyTime() time.Time { return time.UnixMilli(MaxEpoch) }

// State is the content of the owner's annotations: the assignment and the data that belongs to it.
type State struct {
	// Slots names the holder of each assigned slot.
	Slots Slots
	// Handover names the requester of each requested slot.
	Handover Slots
	// UIDs holds the holders' short UIDs.
	UIDs Slots
	// FenceAfter is the largest fence-after in use, 0 if nobody uses strict mode.
	FenceAfter time.Duration
	// Quarantine lists the slots that nobody may have yet (strict mode).
	Quarantine Quarantine
	// Partitions is nil for a workload without partitions, or if what the owner says about them cannot be read.
	Partitions *Partitions
	// Epoch grows with every change.
	Epoch int64
}

// Clone returns a deep copy of s.
func (s State) Clone() State {
	c := s
	c.Slots, c.Handover, c.UIDs = maps.Clone(s.Slots), maps.Clone(s.Handover), maps.Clone(s.UIDs)
	c.Quarantine = slices.Clone(s.Quarantine)
	if s.Partitions != nil {
		p := *s.Partitions
		p.Owners = maps.Clone(p.Owners)
		c.Partitions = &p
	}
	return c
}

// SameContent reports whether s and o are equal, apart from the epoch.
func (s State) SameContent(o State) bool {
	return maps.Equal(s.Slots, o.Slots) && maps.Equal(s.Handover, o.Handover) && maps.Equal(s.UIDs, o.UIDs) &&
		s.FenceAfter == o.FenceAfter && slices.Equal(s.Quarantine, o.Quarantine) && s.Partitions.Same(o.Partitions)
}

// Encode returns the annotations that store s on the owner with this UID, with the assignment under key. The seal is
// one of them. A writer must remove those of Keys(key) that the result does not contain.
func (s State) Encode(key, ownerUID string) map[string]string {
	out := map[string]string{key: s.Slots.Encode(), EpochKey: strconv.FormatInt(s.Epoch, 10)}
	if len(s.Handover) > 0 {
		out[HandoverKey] = s.Handover.Encode()
	}
	if len(s.UIDs) > 0 {
		out[UIDsKey] = s.UIDs.Encode()
	}
	if s.FenceAfter > 0 {
		out[FenceAfterKey] = s.FenceAfter.String()
	}
	if len(s.Quarantine) > 0 {
		out[QuarantineKey] = s.Quarantine.Encode()
	}
	out[SealKey] = Seal(out, key, ownerUID)
	s.Partitions.annotate(out, ownerUID)
	return out
}

// Keys returns idalloc's annotation keys on an owner whose assignment is under key.
func Keys(key string) []string {
	return append(sealedKeys(key), SealKey)
}

func sealedKeys(key string) []string {
	return []string{key, EpochKey, HandoverKey, UIDsKey, FenceAfterKey, QuarantineKey}
}

// Format is the number of the format that this version writes. It goes up when a key gets another meaning, and when a
// key is added.
const Format = 1

// Seal returns the seal of the annotations. It binds their values together, and to the owner with this UID, so a copy
// on another object does not fit. It contains the epoch, which differs between any two writes. So every write changes
// the seal, and metadata.managedFields always names the seal's last writer.
func Seal(annotations map[string]string, key, ownerUID string) string {
	return sealOf(ownerUID, annotations[EpochKey], sealedKeys(key), annotations)
}

// sealOf returns a seal of those of the keys that the annotations have.
func sealOf(ownerUID, epoch string, keys []string, annotations map[string]string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d:%s\n", len(ownerUID), ownerUID)
	for _, k := range keys {
		if v, ok := annotations[k]; ok {
			_, _ = fmt.Fprintf(h, "%d:%s=%d:", len(k), k, len(v)) // writing to a hash never fails
			hashString(h, v)
			hashString(h, "\n")
		}
	}
	return strconv.Itoa(Format) + ":" + epoch + ":" + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}

// hashBytes is how much of the hash a seal has.
const hashBytes = 12

// formatOf reads the format's number from a seal. ok is false if the text is not a seal. Every format, known or not,
// begins with its number.
func formatOf(seal string) (format int, ok bool) {
	const most = 3 // digits
	number, _, ok := strings.Cut(seal, ":")
	if !ok || len(number) > most {
		return 0, false
	}
	format, ok = canonicalID(number)
	return format, ok && format > 0
}

// hashString hashes text piece by piece, because a copy of all of it may be large.
func hashString(h hash.Hash, text string) {
	const most = 1024
	piece := make([]byte, 0, min(len(text), most))
	for len(text) > 0 {
		n := min(len(text), most)
		piece = append(piece[:0], text[:n]...)
		_, _ = h.Write(piece)
		text = text[n:]
	}
}

// ProblemError says which part of an annotation cannot be read.
type ProblemError struct {
	// Key is the annotation's key.
	Key string
	// Detail says what is wrong and quotes the offending part.
	Detail string
}

// Error returns "annotation KEY: DETAIL".
func (p ProblemError) Error() string { return "annotation " + p.Key + ": " + p.Detail }

// Record is the result of reading an owner's annotations.
type Record struct {
	// Key is the annotation key under which Decode looked for the assignment.
	Key string
	// State is the content. A damaged part is empty.
	State State
	// Present says that the owner has at least one of idalloc's annotations.
	Present bool
	// Sealed says that the seal fits the assignment under Key or OtherKey, and that all annotations can be read. It does
	// not say who wrote the seal: only managedFields tell.
	Sealed bool
	// Newer is the seal's format if it is higher than Format, else 0.
	Newer int
	// Partitions is what idalloc wrote about partitions. It has a seal of its own.
	Partitions PartitionRecord
	// OtherKey is the key of another annotation if the seal fits the assignment there. Then State has that assignment.
	OtherKey string
	// Problems lists the parts that could not be read.
	Problems []ProblemError
}

// Decode reads the annotations of the owner with this UID, with the assignment under key. It never fails: it lists in
// Problems what it could not read. It checks epochs against now with CheckEpoch. Callers pass AnyTime for a map that
// idalloc is known to have written.
func Decode(annotations map[string]string, key, ownerUID string, now time.Time) Record {
	r := Record{Key: key}
	fits := r.decodeSeal(annotations, ownerUID)
	slots := func(k string, parse func(string) (Slots, error)) Slots {
		text, ok := annotations[k]
		if !ok {
			return nil
		}
		s, err := parse(text)
		if err != nil {
			r.Problems = append(r.Problems, ProblemError{Key: k, Detail: err.Error()})
			return nil
		}
		return s
	}
	for _, k := range Keys(key) {
		if _, ok := annotations[k]; ok {
			r.Present = true
		}
	}
	r.State.Slots = slots(r.under(), ParseSlots)
	r.State.Handover = slots(HandoverKey, ParseSlots)
	r.State.UIDs = slots(UIDsKey, parseUIDs)
	if text, ok := annotations[EpochKey]; ok {
		epoch, err := parseEpoch(text, now)
		if err != nil {
			r.Problems = append(r.Problems, ProblemError{Key: EpochKey, Detail: err.Error()})
		}
		r.State.Epoch = epoch
	}
	r.decodeStrict(annotations, now)
	r.Sealed = fits && len(r.Problems) == 0
	r.Partitions = DecodePartitions(annotations, ownerUID, now)
	r.State.Partitions = r.Partitions.Partitions
	return r
}

// Keys returns the keys of the annotations that the record is read from, but for those of partitions. The next write under Key
// takes the place of all of them.
func (r *Record) Keys() []string {
	if r.OtherKey != "" {
		return append(Keys(r.Key), r.OtherKey)
	}
	return Keys(r.Key)
}

// under is the key of the assignment that State has.
func (r *Record) under() string { return cmp.Or(r.OtherKey, r.Key) }

// Elsewhere reports whether pods have slots in the assignment of OtherKey. One that names no pod keeps no slot from
// anybody, so it is as good as one under Key.
func (r *Record) Elsewhere() bool { return r.OtherKey != "" && len(r.State.Slots) > 0 }

// decodeSeal finds the assignment that the seal fits.
func (r *Record) decodeSeal(annotations map[string]string, ownerUID string) (fits bool) {
	format, ok := formatOf(annotations[SealKey])
	switch {
	case !ok:
		return false
	case format > Format:
		r.Newer = format
		return false
	case annotations[r.Key] != "" && annotations[SealKey] == Seal(annotations, r.Key, ownerUID):
		return true
	}
	r.OtherKey = otherKey(annotations, r.Key, ownerUID)
	return r.OtherKey != ""
}

// otherKey returns the key of an annotation whose assignment fits the seal, if that is not key.
func otherKey(annotations map[string]string, key, ownerUID string) string {
	keys := Keys(key)
	for k, text := range annotations {
		if strings.HasPrefix(text, "{") && !slices.Contains(keys, k) && annotations[SealKey] == Seal(annotations, k, ownerUID) {
			return k
		}
	}
	return ""
}

func (r *Record) decodeStrict(annotations map[string]string, now time.Time) {
	var err error
	if text, ok := annotations[FenceAfterKey]; ok {
		if r.State.FenceAfter, err = ParseFenceAfter(text); err != nil {
			r.Problems = append(r.Problems, ProblemError{Key: FenceAfterKey, Detail: err.Error()})
		}
	}
	if text, ok := annotations[QuarantineKey]; ok {
		if r.State.Quarantine, err = ParseQuarantine(text, now); err != nil {
			r.Problems = append(r.Problems, ProblemError{Key: QuarantineKey, Detail: err.Error()})
		}
	}
}

func parseEpoch(text string, now time.Time) (int64, error) {
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(epoch, 10) != text {
		return 0, fmt.Errorf("not an epoch: %s", quote(text))
	}
	if err := CheckEpoch(epoch, now); err != nil {
		return 0, err
	}
	return epoch, nil
}

// CheckEpoch returns an error if idalloc cannot have written this epoch: it must be positive, at most MaxEpoch, and at
// most MaxAhead ahead of now.
func CheckEpoch(epoch int64, now time.Time) error {
	switch {
	case epoch <= 0 || epoch > MaxEpoch:
		return fmt.Errorf("epoch %d is not in [1, 2^53 - 1]", epoch)
	case epoch > now.Add(MaxAhead).UnixMilli():
		return fmt.Errorf("epoch %d is more than %s ahead of the clock", epoch, MaxAhead)
	}
	return nil
}
