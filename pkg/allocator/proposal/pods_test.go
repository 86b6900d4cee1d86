package proposal

import (
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

var t0 = time.UnixMilli(1795219200123).UTC() //nolint:gochecknoglobals // the time of all tests

type slots = assignment.Slots

// pod returns a live sibling, made age seconds before t0, without a receipt.
func pod(name string, age int) Pod {
	return Pod{
		Name: name, UID: "uid-" + name, Created: t0.Add(-time.Duration(age) * time.Second), Controller: "rs-1", Owned: true, Ordinal: NoOrdinal,
		Receipt: receipt.Receipt{Share: receipt.Nothing()},
	}
}

// says returns the pod with a receipt that says this.
func (p Pod) says(state receipt.State, id int) Pod {
	p.Receipt.State, p.Receipt.Share.ID = state, id
	return p
}

// after returns the state that the plan leaves.
func after(in Input, d Decision) assignment.State {
	if d.Next == nil {
		return in.State
	}
	return *d.Next
}

// full returns an owner's room with free bytes left for new entries.
func full(state assignment.State, free int) assignment.Room {
	var large *assignment.TooLargeError
	errors.As(assignment.Room{}.Check(state, -1), &large)
	return assignment.Room{Others: assignment.SizeLimit - free - large.Size, All: assignment.SizeLimit - free}
}
