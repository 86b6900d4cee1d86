package assignment

// State is what an owner's annotations propose.
type State struct {
	// Slots names the pod that should have each slot.
	Slots Slots
	// Handover names the requester of each requested slot.
	Handover Slots
	// Row is nil for a workload without partitions, or if the owner's row is unreadable.
	Row *Row
}

// Encode returns the annotations that store s. A writer must remove those of Keys that are not in the result.
func (s State) Encode() map[string]string {
	out := map[string]string{Key: s.Slots.Encode()}
	if len(s.Handover) > 0 {
		out[HandoverKey] = s.Handover.Encode()
	}
	if s.Row != nil {
		out[PartitionOwnersKey] = s.Row.Encode()
	}
	return out
}

// ProblemError describes an unreadable part of an annotation.
type ProblemError struct {
	// Key is the annotation's key.
	Key string
	// Detail describes the problem and quotes the offending part.
	Detail string
}

// Error returns "annotation KEY: DETAIL".
func (p ProblemError) Error() string { return "annotation " + p.Key + ": " + p.Detail }

// Record is the result of reading an owner's annotations.
type Record struct {
	// State is the content. An unreadable part is empty.
	State State
	// Present: the owner has at least one of the annotations of Keys.
	Present bool
	// Problems lists the unreadable parts.
	Problems []ProblemError
}

// Decode reads the annotations of an owner. It never fails: Problems lists what is unreadable.
func Decode(annotations map[string]string) Record {
	r := Record{}
	read := func(key string, parse func(string) error) {
		text, ok := annotations[key]
		if !ok {
			return
		}
		r.Present = true
		if err := parse(text); err != nil {
			r.Problems = append(r.Problems, ProblemError{Key: key, Detail: err.Error()})
		}
	}
	read(Key, func(text string) (err error) { r.State.Slots, err = ParseSlots(text); return err })
	read(HandoverKey, func(text string) (err error) { r.State.Handover, err = ParseSlots(text); return err })
	read(PartitionOwnersKey, func(text string) error {
		row, err := parseRow(text)
		if err == nil {
			r.State.Row = &row
		}
		return err
	})
	return r
}
