package decision

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// published returns what the pod's container is to read, and the token in it. version is the pod's resourceVersion of T2 or later, but not later than T3
// showed: the token of a later holder has to be higher. A pod that has begun keeps its token. Above the count it keeps the count: with the present one there
// is no such id.
func (v *view) published(p *pod, version string) (Published, int64) {
	o := v.w.Owner
	is := identity.Identity{
		State: identity.StateAssigned, ID: p.id, Count: max(o.Count, p.id+1), Pod: p.Name, Namespace: o.Namespace, Owner: v.under(p),
	}
	now, _ := receipt.TokenOf(version) // without one store.Begin writes nothing, and says why
	is.Token = cmp.Or(p.token, now)
	if p.begun && p.was.ID == p.id && p.id >= o.Count {
		is.Count = p.was.Count
	}
	text, err := json.Marshal(is)
	if err != nil {
		panic("idalloc: an identity of strings and numbers does not encode: " + err.Error())
	}
	count := strconv.Itoa(is.Count)
	words := Published{ID: strconv.Itoa(p.id), Count: count, StartCount: p.StartCount, Turn: p.Turn, Identity: string(text)}
	if p.ReadsStartCount {
		start := v.startCount(p, count)
		words.StartCount, words.Turn = start.StartCount, start.Turn
	}
	return words, is.Token
}

// publish tells a pod that has begun what changed.
func (v *view) publish(p *pod) {
	if p.Terminating {
		return
	}
	if words, _ := v.published(p, p.Version); words != p.Published {
		v.d.Publish = append(v.d.Publish, Publish{Pod: p.Name, Published: words})
	}
}
