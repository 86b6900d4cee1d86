package world

import (
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
)

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

// tell is told what happened, and by whom: nil is nobody of ours.
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
