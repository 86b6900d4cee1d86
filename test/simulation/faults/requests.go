package faults

import (
	"encoding/json"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// writes reports whether c changes the owner.
func writes(w *world.World, c *world.Call) bool {
	return c.Verb == server.VerbPatch && c.Resource == w.Profile.Resource && c.Name == world.OwnerName
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

// moves says which slot a write of the owner gives to the pod that makes it, and which it takes from it; -1 is none.
func moves(w *world.World, c *world.Call) (gets, lets int) {
	gets, lets = -1, -1
	v := w.Owner()
	if !writes(w, c) || v == nil {
		return gets, lets
	}
	next, _ := assignment.ParseSlots(patched(c.Body, assignment.DefaultKey)) // nobody has a slot of what cannot be read
	after, ok := next.Of(c.Process.Pod)
	before, had := world.Slots(v).Of(c.Process.Pod)
	if ok && (!had || before != after) {
		gets = after
	}
	if had && (!ok || before != after) {
		lets = before
	}
	return gets, lets
}

// drops reports whether c takes the entry of a pod out.
func drops(w *world.World, c *world.Call, pod string) bool {
	v := w.Owner()
	if !writes(w, c) || v == nil {
		return false
	}
	next, err := assignment.ParseSlots(patched(c.Body, assignment.DefaultKey))
	_, stays := next.Of(pod)
	_, had := world.Slots(v).Of(pod)
	return err == nil && had && !stays
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
func takes(w *world.World, c *world.Call) (is, again bool) {
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.Process.Pod {
		return false, false
	}
	next := noteOf(patched(c.Body, assignment.ReceiptKey))
	v := w.Server.Get(object.Pods, c.Name)
	if v == nil || next.ID == nil || next.GaveUp {
		return false, false
	}
	return true, noteOf(object.Annotation(v.Object, assignment.ReceiptKey)).GaveUp
}

// releases reports whether c is the receipt of a pod that begins to give its slot, and not because it ends.
func releases(w *world.World, c *world.Call) bool {
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.Process.Pod {
		return false
	}
	v := w.Server.Get(object.Pods, c.Name)
	return v != nil && !object.Terminating(v.Object) && noteOf(patched(c.Body, assignment.ReceiptKey)).Gives != nil
}
