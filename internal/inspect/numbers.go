package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// rest reads from an Event of the controller until when an id rests. It changes nothing if the message is of another form.
func (r *rollout) rest(message string) {
	var id int
	var until string
	if n, _ := fmt.Sscanf(message, "id %d rests until %s", &id, &until); n != 2 {
		return
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSuffix(until, ","))
	if err != nil {
		return
	}
	if r.rests == nil {
		r.rests = map[int]time.Time{}
	}
	if at.After(r.rests[id]) {
		r.rests[id] = at
	}
}

// resting returns for how long the id still rests, or "".
func (f *facts) resting(id int) string {
	if left := f.rollout.rests[id].Sub(f.now); left > 0 {
		return short(left)
	}
	return ""
}

// resters finds ids that rest while pods wait for them.
func resters(f *facts) []about {
	return f.entries(func(e entry) (words, bool) {
		left := f.resting(e.id)
		return words{"left": left, "key": assignment.ReuseKey}, left != "" && e.pod.Receipt.Slot() < 0
	})
}

// otherFirsts finds pods that ask for another first machine number than that which is in force.
func otherFirsts(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		first := p.Receipt.Number - p.Receipt.Slot()
		return words{"want": number(p.first), "have": number(first), "key": assignment.FirstNumberKey}, p.live() && p.Receipt.Number > 0 && p.first > 0 && p.first != first
	})
}

// numbers explains the machine number of a pod that has an id.
func (f *facts) numbers(p pod) []string {
	switch {
	case p.first > 0 && !p.byController:
		return []string{"annotation " + assignment.FirstNumberKey + " has no effect, because only a pod with label idalloc.dev/assign: controller keeps its id, and so its number, until it has ended: remove it, or use that label"}
	case p.Receipt.Number > 0:
		return []string{"its machine number is " + number(p.Receipt.Number)}
	}
	return nil
}
