package faults

import (
	"encoding/json"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/dice"
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

// gets says which slot a write of the owner gives to the pod that makes it; -1 is none.
func gets(w *world.World, c *world.Call) int {
	v := w.Owner()
	if !writes(w, c) || v == nil {
		return -1
	}
	next, _ := assignment.ParseSlots(patched(c.Body, assignment.Key)) // no pod has a slot of what cannot be read
	after, ok := next.Of(c.Process.Pod)
	if before, had := world.Slots(v).Of(c.Process.Pod); ok && (!had || before != after) {
		return after
	}
	return -1
}

// drops reports whether c takes the entry of a pod out.
func drops(w *world.World, c *world.Call, pod string) bool {
	v := w.Owner()
	if !writes(w, c) || v == nil {
		return false
	}
	next, err := assignment.ParseSlots(patched(c.Body, assignment.Key))
	_, stays := next.Of(pod)
	_, had := world.Slots(v).Of(pod)
	return err == nil && had && !stays
}

// locks returns what c, a receipt of its process's own pod or by a controller, says, and what the pod's receipt says before. ok is false for any other request.
func locks(w *world.World, c *world.Call) (before, next receipt.Receipt, ok bool) {
	v := w.Server.Get(object.Pods, c.Name)
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.Process.Pod && !c.Process.Controls || v == nil {
		return before, next, false
	}
	next, err := receipt.Parse(patched(c.Body, receipt.Key))
	return receiptOn(v), next, err == nil
}

// receiptOn is a pod's receipt as an onlooker reads it.
func receiptOn(v *server.Version) receipt.Receipt {
	r, err := receipt.Parse(object.Annotation(v.Object, receipt.Key))
	if err != nil {
		return receipt.Receipt{Share: receipt.Nothing()}
	}
	return r
}

// takes reports whether c locks a slot, or more partitions of it; again says that the pod gave a slot up before.
func takes(w *world.World, c *world.Call) (is, again bool) {
	before, next, ok := locks(w, c)
	return ok && next.State == receipt.Locks && !before.Share.Covers(next.Share), before.State == receipt.GaveUp || before.Rank > 0
}

// gives reports whether c gives a slot up, or unlocks partitions of it.
func gives(w *world.World, c *world.Call) bool {
	before, next, ok := locks(w, c)
	return ok && before.State == receipt.Locks && !next.Share.Covers(before.Share)
}

// refusePods has a policy refuse for a while what idalloc writes on some of the pods that are there: it is newer than they are.
func refusePods(w *world.World, f Fault, d *dice.Dice) {
	refused := map[string]bool{}
	for _, v := range w.Server.Objects(object.Pods) {
		if d.Chance(0.5) {
			refused[object.UID(v.Object)] = true
		}
	}
	w.Server.Refuses = func(v *server.Version) string {
		if refused[object.UID(v.Object)] {
			return "ValidatingAdmissionPolicy 'sim' with binding 'sim' denied request: not as it is"
		}
		return ""
	}
	w.After(f.Lasts, func() { w.Server.Refuses = nil })
}
