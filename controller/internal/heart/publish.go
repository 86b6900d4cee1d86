package heart

import (
	"encoding/json"
	"strconv"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// words returns what the pod's container is to read. version is its resourceVersion at T2 or later. With kept it keeps its token, because its lock is
// the same. Above the count it keeps the count: with the present one there is no such id.
func (v *view) words(p *pod, version string, kept bool) Words {
	o := v.w.Owner
	is := identity.Identity{
		State: identity.StateAssigned, ID: p.id, Count: o.Count, Pod: p.Name, Namespace: o.Namespace, Owner: o.Owner,
	}
	var was identity.Identity
	known := p.runs && json.Unmarshal([]byte(p.Identity), &was) == nil && was.ID == p.id
	if is.Token, _ = receipt.TokenOf(version); known && kept { // without one store.Begin writes nothing, and says why
		is.Token = was.Token
	}
	if is.Count = max(o.Count, p.id+1); known && p.id >= o.Count {
		is.Count = was.Count
	}
	text, err := json.Marshal(is)
	if err != nil {
		panic("idalloc: an identity of strings and numbers does not encode: " + err.Error())
	}
	return Words{ID: strconv.Itoa(p.id), Count: strconv.Itoa(is.Count), Identity: string(text)}
}

// publish tells a pod that has begun what changed.
func (v *view) publish(p *pod) {
	if p.Terminating {
		return
	}
	if words := v.words(p, p.Version, true); words != p.Words {
		v.d.Publish = append(v.d.Publish, Publish{Pod: p.Name, Words: words})
	}
}
