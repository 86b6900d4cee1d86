package simulation

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// holdUp has any request of any step of the protocol wait: before it is sent, before it is applied, before its answer arrives,
// or with its process suspended right after it was applied. It waits for a drawn time, or until others got on.
type holdUp struct {
	chance float64 // of each request
	steps  uint    // which kinds of requests, one bit for each of stepOf
	again  float64 // of the next request of a process that was held up
	// meanwhile is the chance that one of the history's other faults happens soon after.
	meanwhile float64
}

// steps is how many kinds of requests stepOf tells apart.
const steps = 5

// stepOf returns what kind of a step of the protocol the request is, -1 for none.
func (w *world) stepOf(c *call) int {
	switch {
	case c.Verb == server.VerbPatch && c.Resource == object.Pods:
		return 0 // T2, G2
	case c.Verb == server.VerbPatch:
		return 1 // C, G3
	case c.Verb == "get" && c.Resource == object.Pods:
		return 2
	case c.Verb == "get":
		return 3 // R, T4
	case c.Verb == "list":
		return 4 // L, T3
	}
	return -1
}

// heldUp holds a request up if its dice say so. It returns true if the request is not to be sent now.
func (w *world) heldUp(c *call) bool {
	h, p := w.net.holdUp, c.p
	if h.chance == 0 || w.over || p.dead || p.frozen || p.isCut() {
		return false
	}
	step := w.stepOf(c)
	if step < 0 {
		return false
	}
	chance := 0.0
	if h.steps&(1<<uint(step)) != 0 {
		chance = h.chance
	}
	if p.heldUp {
		chance = max(chance, h.again)
	}
	if p.heldUp = c.Dice.Chance(chance); !p.heldUp {
		return false
	}
	w.faults["held up"]++
	d := dice.Derive(c.Dice.Next(), "held up")
	for at := d.Tail(300 * time.Millisecond); d.Chance(h.meanwhile); at += d.Tail(2 * time.Second) {
		w.After(at, func() { w.mischief.another(d) })
	}
	switch d.Below(6) {
	case 0, 1, 2: // the process stands still before it sends
		p.freeze()
		w.until(p, d, p.goOn)
		return false
	case 3: // the request is late
		w.until(p, d, func() { w.arrive(c, false) })
		return true
	case 4: // the answer is late
		c.lateAnswer = d
	default: // the process stands still after the request was applied
		c.served = func(server.Answer) time.Duration {
			p.freeze()
			w.until(p, d, p.goOn)
			return 0
		}
	}
	return false
}
