package decision

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// published returns the annotations for the pod's container, and the token in them. version is the pod's resourceVersion of T2 or later, but not later than T3
// showed, because a later holder must get a higher token. A pod that has begun keeps its token. A pod with an id above the count also keeps its earlier count,
// because the present count has no such id.
func (v *view) published(p *pod, version string) (Published, int64) {
	o := v.w.Owner
	is := identity.Identity{
		State: identity.StateAssigned, ID: p.id, Count: max(o.Count, p.id+1), Pod: p.Name, Namespace: o.Namespace, Owner: v.under(p),
	}
	is.Number = p.machine()
	now, _ := receipt.TokenOf(version) // without a token, store.Begin writes nothing and returns an error
	is.Token = cmp.Or(p.token, now)
	if p.begun && p.was.ID == p.id && p.id >= o.Count {
		is.Count = p.was.Count
	}
	text, err := json.Marshal(is)
	if err != nil {
		panic("idalloc: an identity of strings and numbers does not encode: " + err.Error())
	}
	count := strconv.Itoa(is.Count)
	words := Published{ID: strconv.Itoa(p.id), Count: count, StartCount: p.StartCount, Turn: p.Turn, Number: p.Number, Identity: string(text)}
	if is.Number > 0 {
		words.Number = strconv.Itoa(is.Number)
	}
	if p.ReadsStartCount {
		start := v.startCount(p, count)
		words.StartCount, words.Turn = start.StartCount, start.Turn
	}
	return words, is.Token
}

// publish writes the annotations of a pod that has begun, if they changed.
func (v *view) publish(p *pod) {
	if p.Terminating {
		return
	}
	if words, _ := v.published(p, p.Version); words != p.Published {
		v.d.Publish = append(v.d.Publish, Publish{Pod: p.Name, Published: words})
	}
}
