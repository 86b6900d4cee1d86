package simulation

import (
	"math"
	"slices"
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

// drawHoldUp draws which requests wait, and how often.
func drawHoldUp(n *network, d *dice.Dice) {
	n.holdUp = holdUp{
		chance: math.Pow(10, -1.5*d.Float()), steps: uint(d.Between(1, 1<<steps-1)), again: dice.Pick(d, []float64{0, 0.5, 0.9}), meanwhile: dice.Pick(d, []float64{0.2, 0.6, 0.8}),
	}
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
		w.After(at, func() { w.another(d) })
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

// news is something that others wait for who are held up.
type news int

const (
	anOwnerChanged news = iota
	aReceiptChanged
	aWorkBegan
	kindsOfNews
)

// waiting is one that is held up until it has heard so many news of others, or its time is over.
type waiting struct {
	p    *process
	news news
	left int
	do   func()
}

// until runs do when others got on, or after a time that is milliseconds as often as minutes.
func (w *world) until(p *process, d *dice.Dice, do func()) {
	long := time.Duration(math.Pow(10, 1.3+3.5*d.Float())) * time.Millisecond // 20 ms to a minute
	wait := &waiting{p: p, news: news(d.Below(int(kindsOfNews))), do: do}     // only the time counts
	if d.Chance(0.6) {
		long, wait.left = d.Span(5*time.Second, time.Minute), 1+d.Below(3)
	}
	w.waiting = append(w.waiting, wait)
	w.After(long, func() { w.goOn(wait) })
}

// goOn ends a wait, once.
func (w *world) goOn(wait *waiting) {
	i := slices.Index(w.waiting, wait)
	if i < 0 {
		return
	}
	w.waiting = slices.Delete(slices.Clone(w.waiting), i, i+1)
	w.judge.progress.troubled = w.Now()
	wait.do()
}

// tell is told what happened, and by whom: nil is nobody of ours.
func (w *world) tell(what news, by *process) {
	for _, wait := range slices.Clone(w.waiting) {
		if wait.news != what || wait.p == by || wait.left == 0 {
			continue
		}
		if wait.left--; wait.left > 0 {
			continue
		}
		w.After(w.dice("news", wait.p.id, wait.p.uid).Tail(20*time.Millisecond), func() { w.goOn(wait) })
	}
}

// release lets all go on who are held up.
func (w *world) release() {
	for _, wait := range slices.Clone(w.waiting) {
		w.goOn(wait)
	}
}

// manyMore bounds how many faults happen because somebody is held up.
const manyMore = 40

// another has one of the history's faults happen now.
func (w *world) another(d *dice.Dice) {
	if w.quiet || len(w.others) == 0 || w.more >= manyMore {
		return
	}
	w.more++
	k := dice.Pick(d, w.others)
	f := Fault{Name: k.name, At: w.Now(), Draw: d.Next()}
	if k.lasts > 0 {
		f.Lasts = d.Span(time.Millisecond, k.lasts)
	}
	w.inject(k, f)
}
