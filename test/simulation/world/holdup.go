package world

import (
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// HoldUp has any request of any step of the protocol wait: before it is sent, before it is applied, before its answer arrives,
// or with its process suspended right after it was applied. It waits for a drawn time, or until others got on.
type HoldUp struct {
	Chance float64 // of each request
	Steps  uint    // which kinds of requests, one bit for each of stepOf
	Again  float64 // of the next request of a process that was held up
	// Meanwhile is the chance that one of the history's other faults happens soon after.
	Meanwhile float64
}

// KindsOfSteps is how many kinds of requests stepOf tells apart.
const KindsOfSteps = 7

// stepOf returns what kind of a step of the protocol the request is, -1 for none.
func stepOf(c *Call) int {
	switch {
	case c.Verb == server.VerbPatch && c.Resource == object.Pods:
		return 0 // T2
	case c.Verb == server.VerbPatch:
		return 1 // C
	case c.Verb == "get" && c.Resource == object.Pods:
		return 2
	case c.Verb == "get":
		return 3 // R
	case c.Verb == "list" && c.Resource == object.Pods:
		return 4 // L, T3
	case c.Writes():
		return 5 // of a Lease
	case c.Verb == "list":
		return 6
	}
	return -1
}

// holdsUp holds a request up if its dice say so. It returns true if the request is not to be sent now.
func (w *World) holdsUp(c *Call) bool {
	h, p := w.Network.HoldUp, c.Process
	if h.Chance == 0 || w.over || p.Dead || p.frozen || p.isCut() {
		return false
	}
	step := stepOf(c)
	if step < 0 {
		return false
	}
	chance := 0.0
	if h.Steps&(1<<uint(step)) != 0 {
		chance = h.Chance
	}
	if p.heldUp {
		chance = max(chance, h.Again)
	}
	if p.heldUp = c.Dice.Chance(chance); !p.heldUp {
		return false
	}
	w.Faults["held up"]++
	d := dice.Derive(c.Dice.Next(), "held up")
	for at := d.Tail(300 * time.Millisecond); d.Chance(h.Meanwhile); at += d.Tail(2 * time.Second) {
		w.After(at, func() { w.Mischief.Another(d) })
	}
	switch d.Below(6) {
	case 0, 1, 2: // the process stands still before it sends
		p.Freeze()
		w.until(p, d, p.GoOn)
		return false
	case 3: // the request is late
		w.until(p, d, func() { w.Arrive(c, false) })
		return true
	case 4: // the answer is late
		c.lateAnswer = d
	default: // the process stands still after the request was applied
		c.Served = func(server.Answer) time.Duration {
			p.Freeze()
			w.until(p, d, p.GoOn)
			return 0
		}
	}
	return false
}

// news is something that others wait for who are held up.
type news int

const (
	anOwnerChanged news = iota
	aReceiptChanged
	aWorkBegan
	aListServed
	kindsOfNews
)

// waiting is one that is held up until it has heard so many news of others, or its time is over.
type waiting struct {
	p    *Process
	news news
	left int
	do   func()
}

// until runs do when others got on, or after a time that is milliseconds as often as minutes.
func (w *World) until(p *Process, d *dice.Dice, do func()) {
	long := time.Duration(math.Pow(10, 1.3+3.5*d.Float())) * time.Millisecond // 20 ms to a minute
	wait := &waiting{p: p, news: news(d.Below(int(kindsOfNews))), do: do}     // only the time counts
	if d.Chance(0.6) {
		long, wait.left = d.Span(5*time.Second, time.Minute), 1+d.Below(3)
	}
	w.waiting = append(w.waiting, wait)
	w.After(long, func() { w.goOn(wait) })
}

// goOn ends a wait, once.
func (w *World) goOn(wait *waiting) {
	i := slices.Index(w.waiting, wait)
	if i < 0 {
		return
	}
	w.waiting = slices.Delete(slices.Clone(w.waiting), i, i+1)
	w.Witness.Trouble()
	wait.do()
}

// tell is told what happened, and by which process: nil is none of ours.
func (w *World) tell(what news, by *Process) {
	for _, wait := range slices.Clone(w.waiting) {
		if wait.news != what || wait.p == by || wait.left == 0 {
			continue
		}
		if wait.left--; wait.left > 0 {
			continue
		}
		w.After(w.Dice("news", wait.p.ID, wait.p.UID).Tail(20*time.Millisecond), func() { w.goOn(wait) })
	}
}

// release lets all go on who are held up.
func (w *World) release() {
	for _, wait := range slices.Clone(w.waiting) {
		w.goOn(wait)
	}
}

// HeldUp returns who is held up, the longest first.
func (w *World) HeldUp() []*Process {
	out := make([]*Process, 0, len(w.waiting))
	for _, wait := range w.waiting {
		out = append(out, wait.p)
	}
	return out
}
