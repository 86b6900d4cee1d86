package checks

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// heldBy is what the judge knows of the last holder of an id or a partition.
type heldBy struct {
	p     *world.Process
	token int64
}

// thing is an id or a partition of an owner.
type thing struct {
	owner  identity.Owner
	number int
}

// checkToken reports a token that is not above that of another pod before, that fell, or that another pod has used.
func (j *Judge) checkToken(what string, of thing, last map[thing]heldBy, p *world.Process, now int64) {
	before, known := last[of]
	same := known && before.p.UID == p.UID
	switch user, used := j.users[now]; {
	case now <= 0:
		j.reportf(token, "%s %d: %s has no token", what, of.number, p.ID)
	case used && user != p.UID:
		j.reportf(token, "%s %d: %s has %d, which another pod has used", what, of.number, p.ID, now)
	case !known:
	case same && now < before.token:
		j.reportf(token, "%s %d: the token of %s fell from %d to %d", what, of.number, p.ID, before.token, now)
	case !same && now <= before.token && !j.excused(p, before.p) && (!used || !j.shared(what, of, p, before.p)):
		j.reportf(token, "%s %d: %s has %d, and before it %s had %d", what, of.number, p.ID, now, before.p.ID, before.token)
	}
	j.users[now] = p.UID
	if !known || now >= before.token {
		last[of] = heldBy{p, now}
	}
}

// began checks an id that a process begins to act under.
func (j *Judge) began(p *world.Process, b identity.Identity) {
	is := thing{b.Owner, b.ID}
	j.checkToken("id", is, j.byID, p, b.Token)
	j.checkReuse(p, b)
	if was, had := j.idOf[p.UID]; had && was != is && j.w.Now()-j.excusedAt > 10*time.Minute && !j.failed(p) {
		j.reportf(moves, "%s moved from id %d to %d", p.ID, was.number, b.ID)
	}
	j.idOf[p.UID] = is
}

// failed reports whether the program of a process's pod failed lately: it stands back for longer than anything else is an excuse for.
func (j *Judge) failed(p *world.Process) bool {
	v := j.w.Server.Get(object.Pods, p.Pod)
	if v == nil || object.UID(v.Object) != p.UID {
		return false
	}
	r := j.receipt(v)
	return r.State != receipt.None && r.Failures() > 0
}
