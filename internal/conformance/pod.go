package conformance

import "slices"

type pod struct {
	uid     string
	receipt Receipt
	// versions holds all receipts of the pod, sent or not. things holds what it has locked or worked on.
	versions []*version
	things   []*thing
	// ids are the things that its annotations name.
	ids         []string
	gated, gone bool
	// exposed: an assumption was broken for the pod, and it has written nothing since. damaged: an assumption was broken for it at some time.
	exposed, damaged bool
}

// version is one of a pod's receipts. stood: it stood on the pod. sent: it was sent. last: the process sent it last.
type version struct {
	Receipt

	stood, sent, last bool
}

// thing is what a pod has to do with a slot or a partition.
type thing struct {
	name string
	// unbroken names the receipts that have stood since the pod locked the thing, and shown those for which T3 showed no other lock.
	unbroken, shown []string
	// leased: a T3 showed no other Lease.
	leased, works bool
	// since is the version since which the pod has locked the thing, until the newest one that T3 showed, and token the one used under that lock.
	since, until, token int64
	// had is the token of the pod's last work on it.
	had int64
}

func (p *pod) send(r Receipt) {
	is := p.of(r)
	is.Receipt, is.sent = r, true
}

// version returns the receipt of this name, or an empty one.
func (p *pod) version(id string) version {
	for _, v := range p.versions {
		if v.ID == id {
			return *v
		}
	}
	return version{}
}

// of returns the version for this receipt. It adds the version if it is new.
func (p *pod) of(r Receipt) *version {
	for _, v := range p.versions {
		if v.ID == r.ID {
			return v
		}
	}
	v := &version{Receipt: r}
	p.versions = append(p.versions, v)
	return v
}

// answered records that the process acts on the answer to this write alone. If id is empty, it acts on none.
func (p *pod) answered(id string) {
	for _, v := range p.versions {
		v.last = v.ID == id
	}
}

// thing returns what the pod has to do with a thing. Do not change the result.
func (p *pod) thing(x string) *thing {
	for _, is := range p.things {
		if is.name == x {
			return is
		}
	}
	return &thing{}
}

// use is as thing, but the result may be changed.
func (p *pod) use(x string) *thing {
	for _, is := range p.things {
		if is.name == x {
			return is
		}
	}
	is := &thing{name: x}
	p.things = append(p.things, is)
	return is
}

// show records that T3 of this version showed a receipt, and no other lock of the thing.
func (t *thing) show(receipt string, version int64) {
	if t.until = max(t.until, version); !t.isShown(receipt) {
		t.shown = append(t.shown, receipt)
	}
}

func (t *thing) isUnbroken(receipt string) bool { return slices.Contains(t.unbroken, receipt) }

func (t *thing) isShown(receipt string) bool { return slices.Contains(t.shown, receipt) }

// confirmed reports whether T3 showed no other lock of the thing, and the pod has locked it ever since.
func (t *thing) confirmed() bool { return slices.ContainsFunc(t.unbroken, t.isShown) }

// worksWithin reports whether the list locks all that the pod works on.
func (p *pod) worksWithin(list []string) bool {
	return !slices.ContainsFunc(p.things, func(t *thing) bool { return t.works && !has(list, t.name) })
}

// isNew reports whether this receipt was never sent and never stood on the pod.
func (p *pod) isNew(id string) bool {
	v := p.version(id)
	return !v.sent && !v.stood
}

// mayNote reports whether the pod may note r.Notes: it must work on each thing, have noted it before, or T3 must have shown no other lock of it.
func (p *pod) mayNote(r Receipt) bool {
	return !slices.ContainsFunc(r.Notes, func(x string) bool {
		is := p.thing(x)
		return !slices.Contains(r.Locks, x) || !is.confirmed() && !is.works && !slices.Contains(p.version(r.Tests).Notes, x)
	})
}
