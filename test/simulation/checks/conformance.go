package checks

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/conformance"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Conformance writes the history as steps of test/proof and reports each that the protocol does not allow. It knows what is stored, what lists return and
// what is worked on, and nothing that processes believe.
type Conformance struct {
	*Judge

	recorder conformance.Recorder
	// under is what each process worked on last.
	under map[*world.Process]worked
	pages map[*world.Process]conformance.List
}

// worked is what a process works on.
type worked struct {
	id    identity.Identity
	parts map[int]int64
}

// conforms is the promise that steps keep to the protocol.
const conforms = "conformance"

// NewConformance has the judge and the checker of histories be the witness of a world.
func NewConformance(j *Judge) *Conformance {
	c := &Conformance{Judge: j, under: map[*world.Process]worked{}, pages: map[*world.Process]conformance.List{}}
	c.recorder.Refused = func(s conformance.Step, err error) {
		j.reportf(conforms, "%s: %s (%s of pod %s)", s.Do, conformance.Rule(err), s.Thing, s.Pod)
	}
	c.recorder.Assumed = func(conformance.Step, error) {}
	j.w.Witness, j.w.Answered = c, c.answered
	return c
}

// Steps is how many steps the protocol allowed.
func (c *Conformance) Steps() int { return c.recorder.Steps }

// Only returns the violations that the checker of histories alone has found.
func (c *Conformance) Only() []Violation {
	return slices.DeleteFunc(slices.Clone(c.violations), func(v Violation) bool { return v.Promise != conforms })
}

// Look implements world.Witness.
func (c *Conformance) Look() {
	c.look()
	c.Judge.Look()
}

// Stored implements world.Witness.
func (c *Conformance) Stored(v *server.Version) {
	c.look()
	switch v.Kind.Resource {
	case object.Pods:
		c.pod(v)
	case object.Leases:
		c.lease(v)
	}
	c.Judge.Stored(v)
}

// look takes in what is worked on.
func (c *Conformance) look() {
	var pods []string
	for _, p := range c.w.Processes {
		var now worked
		if b := p.Belief(); b != nil {
			now = worked{*b, p.Working()}
		}
		was := c.under[p]
		if was.id.Owner == now.id.Owner && was.id.ID == now.id.ID && was.id.Token == now.id.Token && maps.Equal(was.parts, now.parts) {
			continue
		}
		c.under[p] = worked{now.id, maps.Clone(now.parts)}
		if !slices.Contains(pods, p.UID) {
			pods = append(pods, p.UID)
		}
	}
	for p := range c.under {
		if !slices.Contains(c.w.Processes, p) { // nothing is left of it
			pods = append(pods, p.UID)
			delete(c.under, p)
		}
	}
	for _, uid := range pods {
		c.recorder.Works(uid, c.things(uid), c.w.Now())
	}
}

// things is what all processes of a pod work on, with their tokens.
func (c *Conformance) things(uid string) map[string]int64 {
	out := map[string]int64{}
	for p, is := range c.under {
		if p.UID != uid || is.id.Token == 0 {
			continue
		}
		owner := assignment.OwnerLabelValue(is.id.Owner.Kind + "/" + is.id.Owner.Name)
		out[conformance.Slot(server.Namespace, owner, is.id.ID)] = is.id.Token
		for k, token := range is.parts {
			out[conformance.Partition(server.Namespace, owner, k)] = token
		}
	}
	return out
}

// pod takes in a version of a pod.
func (c *Conformance) pod(v *server.Version) {
	if !v.Exists() || object.Ended(v.Object) {
		c.recorder.Ended(object.UID(cmpObject(v)))
		return
	}
	m, w := objectMeta(v), conformance.Write{At: c.w.Now()}
	if p := c.w.Serving; p != nil && c.w.Request.Verb == server.VerbPatch {
		if w.By, w.Process = conformance.Process, p.ID; p.Controls {
			w.By = conformance.Controller
		}
		w.Patch = conformance.ReadPatch(c.w.Request.Body)
	}
	c.recorder.Pod(m, w)
}

// cmpObject is an object as it is, or as it was before it was deleted.
func cmpObject(v *server.Version) object.Object {
	if v.Object == nil && v.Before != nil {
		return v.Before.Object
	}
	return v.Object
}

func objectMeta(v *server.Version) *metav1.ObjectMeta {
	m := metaOf(v)
	m.Name, m.Namespace, m.ResourceVersion = v.Name, server.Namespace, strconv.FormatInt(v.RV, 10)
	return m
}

// lease takes in a version of a Lease of a slot.
func (c *Conformance) lease(v *server.Version) {
	o := cmpObject(v)
	owner, labelled := labelsOf(o)
	if _, was := labelsOf(cmpBefore(v)); !labelled && !was {
		return // of the election
	}
	holder := ""
	if v.Exists() && labelled { // without its labels no pod finds it
		holder = holderOf(v)
	}
	var locks []string
	if r, err := receipt.Parse(object.Annotation(o, receipt.Key)); err == nil && holder != "" && r.State == receipt.Locks {
		locks = append(locks, conformance.Slot(server.Namespace, owner, r.Share.ID))
		for k := range r.Share.Partitions.All() {
			locks = append(locks, conformance.Partition(server.Namespace, owner, k))
		}
	}
	lasts := time.Duration(object.Number(o, "spec", "leaseDurationSeconds")) * time.Second
	by := conformance.Process
	if c.w.Serving == nil || c.w.Server.MutatesLease != nil {
		by = conformance.Another
	}
	c.recorder.Lease(v.Name, holder, by, locks, c.w.Now(), c.w.Now()+lasts)
}

// cmpBefore is an object as it was before this version, or nil.
func cmpBefore(v *server.Version) object.Object {
	if v.Before == nil {
		return nil
	}
	return v.Before.Object
}

// labelsOf returns the owner of a Lease of a slot, and whether the labels are there by which pods find the Lease.
func labelsOf(o object.Object) (owner string, found bool) {
	labels := object.Labels(o)
	owner = labels[receipt.OwnerLabel]
	return owner, owner != "" && labels[receipt.IDLabel] != ""
}

// answered takes in what a list returned.
func (c *Conformance) answered(p *world.Process, r *server.Request, a server.Answer) {
	if p.UID != "" {
		c.recorder.Asks(p.UID, p.ID)
	}
	if a.Page == nil {
		return
	}
	if r.Resource == object.Leases {
		c.recorder.ListedLeases(p.UID, c.w.Now())
	}
	if r.Resource != object.Pods {
		return
	}
	l := conformance.List{By: p.UID, Process: p.ID, Slots: strings.Contains(r.Selector(), receipt.IDLabel)}
	if r.IsLaterPage() {
		l.Pods = c.pages[p].Pods
	}
	for _, v := range a.Page.Objects {
		l.Pods = append(l.Pods, objectMeta(v))
	}
	l.Version, l.Newest = a.Page.RV, a.Page.RV == c.w.Server.Newest()
	if c.pages[p] = l; !a.Page.More {
		c.recorder.Listed(l)
	}
}
