package simulation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// trap waits for one request, and then something goes wrong. Random faults hit a protocol between two given steps once in
// many thousand histories; these are set there.
type trap struct {
	until time.Duration
	wants func(c *call) bool
	// spring is called before the request is on its way. It may suspend or kill its process; true keeps the request
	// from being sent.
	spring func(c *call) (kept bool)
}

// trapFor arms a trap for as long as the fault lasts.
func (w *world) trapFor(lasts time.Duration, wants func(c *call) bool, spring func(c *call) bool) *trap {
	t := &trap{until: w.Now() + lasts, wants: wants, spring: spring}
	w.traps = append(w.traps, t)
	return t
}

// trapped shows a request to the traps. It returns true if one keeps it.
func (w *world) trapped(c *call) bool {
	if w.over || c.p.dead || c.p.frozen || c.p.isCut() {
		return false
	}
	for _, t := range w.traps {
		if w.Now() > t.until || !t.wants(c) {
			continue
		}
		w.drop(t)
		w.Step("trap", c.p.id, c.Verb, c.Resource, c.Name)
		return t.spring(c)
	}
	return false
}

func (w *world) drop(t *trap) {
	w.traps = slices.DeleteFunc(slices.Clone(w.traps), func(other *trap) bool { return other == t })
}

// disarm takes all traps away.
func (w *world) disarm() { w.traps = nil }

// when runs do once the condition holds, or after the time within.
func (w *world) when(within time.Duration, d *dice.Dice, holds func() bool, do func()) {
	until := w.Now() + within
	var look func()
	look = func() {
		if w.quiet || w.Now() >= until || holds() {
			do()
			return
		}
		w.After(d.Span(5*time.Millisecond, 25*time.Millisecond), look)
	}
	w.After(1, look)
}

// writes reports whether c changes the owner.
func (w *world) writes(c *call) bool {
	return c.Verb == server.VerbPatch && c.Resource == w.profile.Resource && c.Name == ownerName
}

// patched returns what a JSON Patch sets an annotation to.
func patched(body []byte, key string) string {
	var ops []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if json.Unmarshal(body, &ops) != nil {
		return ""
	}
	pointer := "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
	for _, o := range ops {
		if o.Op != "add" && o.Op != "replace" {
			continue
		}
		switch value := o.Value.(type) {
		case string:
			if o.Path == pointer {
				return value
			}
		case map[string]any:
			if s, ok := value[key].(string); ok && o.Path == "/metadata/annotations" {
				return s
			}
		}
	}
	return ""
}

// slots reads an assignment; nil if it cannot be read.
func slots(value string) assignment.Slots {
	s, err := assignment.ParseSlots(value)
	if err != nil {
		return nil
	}
	return s
}

// moves says which slot a write of the owner gives to the pod that makes it, and which it takes from it; -1 is none.
func (w *world) moves(c *call) (gets, lets int) {
	gets, lets = -1, -1
	v := w.owner()
	if !w.writes(c) || v == nil {
		return gets, lets
	}
	after, ok := slots(patched(c.Body, assignment.DefaultKey)).Of(c.p.pod)
	before, had := slots(object.Annotation(v.Object, assignment.DefaultKey)).Of(c.p.pod)
	if ok && (!had || before != after) {
		gets = after
	}
	if had && (!ok || before != after) {
		lets = before
	}
	return gets, lets
}

// receiptNote is a receipt as an onlooker reads it.
type receiptNote struct {
	ID     *int `json:"id"`
	GaveUp bool `json:"gaveUp"`
	Gives  *int `json:"gives"`
}

func noteOf(value string) receiptNote {
	var n receiptNote
	if json.Unmarshal([]byte(value), &n) != nil {
		return receiptNote{}
	}
	return n
}

// takes reports whether c is a pod's receipt for a slot; again says that the pod gave up one before.
func (w *world) takes(c *call) (is, again bool) {
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.p.pod {
		return false, false
	}
	next := noteOf(patched(c.Body, assignment.ReceiptKey))
	v := w.server.Get(object.Pods, c.Name)
	if v == nil || next.ID == nil || next.GaveUp {
		return false, false
	}
	return true, noteOf(object.Annotation(v.Object, assignment.ReceiptKey)).GaveUp
}

// releases reports whether c is the receipt of a pod that begins to give its slot, and not because it ends.
func (w *world) releases(c *call) bool {
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.p.pod {
		return false
	}
	v := w.server.Get(object.Pods, c.Name)
	return v != nil && !object.Terminating(v.Object) && noteOf(patched(c.Body, assignment.ReceiptKey)).Gives != nil
}
