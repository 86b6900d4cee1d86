package plan

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

var t0 = time.UnixMilli(1795219200123).UTC() //nolint:gochecknoglobals // the time of all tests

type slots = assignment.Slots

// pod returns a live sibling, made age seconds before t0.
func pod(name string, age int, more ...func(*Pod)) Pod {
	p := Pod{
		Name: name, UID: "uid-" + name, Created: t0.Add(-time.Duration(age) * time.Second), Controller: "rs-1",
		Owned: true, Ordinal: NoOrdinal,
	}
	for _, m := range more {
		m(&p)
	}
	return p
}

func holds(id int) func(*Pod) { return holdsSince(id, 100) }

func holdsSince(id int, epoch int64) func(*Pod) {
	return func(p *Pod) { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", ID: id, Epoch: epoch} }
}
func gives(id int) func(*Pod) {
	return func(p *Pod) {
		p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", GaveUp: true, ID: id, Gives: true}
	}
}

func gaveUp(p *Pod)        { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", GaveUp: true} }
func waits(p *Pod)         { p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", Waits: true} }
func otherRevision(p *Pod) { p.Controller = "rs-2" }

func current(maxUnavailable, available int) Rollout {
	return Rollout{Current: true, MaxUnavailable: maxUnavailable, Available: available}
}

// old returns a pod of the older revision that holds a slot and hands it over.
func old(name string, id int) Pod {
	return pod(name, 9, otherRevision, holds(id), func(p *Pod) { p.Receipt.HandsOver = true })
}
