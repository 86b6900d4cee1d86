package simulation

import (
	"net/http"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// network is how requests fare at this moment, as probabilities.
type network struct {
	lostRequest, lostResponse, duplicate, late, failed float64
	astray                                             float64 // of a request to be answered by somebody who is not the API server
	slower                                             float64 // factor of all delays
	silent                                             float64 // of an event to be minutes late
	stall                                              stall
	killWriter                                         float64 // of a process to be killed right after a write of its own
	meddle                                             float64 // of the owner to be damaged right after somebody wrote
	holdUp                                             holdUp
}

// stall is one kind of request that takes long, there or back, while the client waits: that holds a protocol between
// two of its steps.
type stall struct {
	chance float64
	verb   string
	owner  bool // requests about the owner, not about pods
	answer bool // on the way back
}

// delay is what the stall adds to a request.
func (s stall) delay(c *call, answer bool, d *dice.Dice) time.Duration {
	if answer != s.answer || c.Verb != s.verb || (c.Resource != object.Pods) != s.owner || !d.Chance(s.chance) {
		return 0
	}
	return d.Span(0, 14*time.Second) // less than a request may take
}

// delay is what a request takes, one way.
func (w *world) delay(d *dice.Dice) time.Duration {
	return time.Duration(w.net.slower * float64(d.Tail(w.profile.Latency)))
}

// EventDelay is what a watch event takes.
func (w *world) EventDelay(d *dice.Dice) time.Duration {
	if d.Chance(w.net.silent) {
		return d.Span(10*time.Second, 3*time.Minute)
	}
	return time.Duration(w.net.slower * float64(d.Tail(w.profile.WatchLag)))
}

// route sends a request on its way.
func (w *world) route(c *call) {
	p := c.p
	p.calls++
	if w.trapped(c) || w.heldUp(c) {
		return
	}
	switch {
	case w.over:
		w.leaked = p.id + " asks after its end: " + c.Verb + " " + c.Resource
		w.After(time.Second, func() { c.finish(server.Answer{Err: errDead}) })
		return
	case p.dead:
		w.After(c.Dice.Span(time.Millisecond, 2*time.Millisecond), func() { c.finish(server.Answer{Err: errDead}) })
		return
	case p.frozen:
		p.asleep = append(p.asleep, func() { w.route(c) })
		return
	case p.isCut():
		w.After(c.Dice.Span(time.Second, 20*time.Second), func() { c.finish(server.Answer{Err: errReset}) })
		return
	}
	d := c.Dice
	go1 := w.delay(d)
	go1 += w.net.stall.delay(c, false, d)
	if d.Chance(w.net.lostRequest) {
		w.faults["lost request"]++
		w.lose(c)
		return
	}
	if d.Chance(w.net.late) {
		w.faults["late request"]++
		go1 += d.Span(time.Second, 90*time.Second)
	}
	if c.Verb == server.VerbPatch && d.Chance(w.net.duplicate) {
		w.faults["duplicated request"]++
		w.After(go1+d.Tail(2*time.Second), func() { w.arrive(c, true) })
	}
	w.After(go1, func() { w.arrive(c, false) })
}

// lose ends a call without an answer: its connection breaks, or it hangs until HTTP/2's pings find that out.
func (w *world) lose(c *call) {
	hangs := c.Dice.Span(30*time.Second, time.Minute)
	if c.Dice.Chance(0.5) {
		hangs = c.Dice.Tail(time.Second)
	}
	w.After(hangs, func() { c.finish(server.Answer{Err: errReset}) })
}

// arrive is a request at the server. Nobody waits for the answer to a copy.
func (w *world) arrive(c *call, isCopy bool) {
	if c.p.dead && c.Verb != server.VerbPatch {
		return
	}
	d := c.Dice
	if isCopy {
		d = dice.Derive(d.Next(), "copy")
	}
	var a server.Answer
	applied := true
	switch {
	case w.down:
		a = server.Answer{Err: errRefused}
	case d.Chance(w.net.astray):
		w.faults["foreign 404"]++
		a, applied = foreign404(d, c), false
	case d.Chance(w.net.failed):
		w.faults["server error"]++
		var before bool
		a, before = serverError(d)
		if !before {
			w.serve(c) // it fails after it did it
		}
		applied = false
	default:
		a = w.serve(c)
	}
	w.Step("request", c.p.id, c.Verb, c.Resource, c.Name, strconv.Itoa(a.Code), strconv.FormatBool(isCopy))
	if isCopy {
		return
	}
	if c.Verb == server.VerbPatch && d.Chance(w.net.killWriter) {
		// Before it hears of it, or while it is at its next step.
		w.After(dice.Pick(d, []time.Duration{1, d.Tail(2 * w.profile.Latency), d.Tail(10 * w.profile.Latency)}), func() { w.kill(c.p) })
	}
	if c.Verb == server.VerbPatch && d.Chance(w.net.meddle) {
		w.After(d.Tail(5*w.profile.Latency), func() { w.mischief.damage(d) })
	}
	if applied && d.Chance(w.net.lostResponse) {
		w.faults["lost response"]++
		if a.Stream != nil {
			a.Stream.Forget()
		}
		w.lose(c)
		return
	}
	if c.lateAnswer != nil {
		w.until(c.p, c.lateAnswer, func() { c.finish(a) })
		return
	}
	back := w.delay(d) + w.net.stall.delay(c, true, d)
	if c.served != nil && !w.quiet { // one that was held up until all is well is answered, no more
		back += c.served(a)
	}
	w.After(back, func() { c.finish(a) })
}

// serve has the server carry a request out.
func (w *world) serve(c *call) server.Answer {
	w.serving = c.p
	defer func() { w.serving = nil }()
	return w.server.Serve(c.Request)
}

// foreign404 is the 404 of a proxy, or of a server that does not know the path: it says nothing of the object.
func foreign404(d *dice.Dice, c *call) server.Answer {
	const notFound = http.StatusNotFound
	switch d.Below(4) {
	case 0:
		return server.Answer{Code: notFound, Content: "text/html", Body: []byte("<html><body><h1>404 Not Found</h1></body></html>")}
	case 1:
		return server.Answer{Code: notFound, Content: "text/plain; charset=utf-8", Body: []byte("404 page not found\n")}
	case 2:
		return server.Answer{Code: notFound}
	}
	f := server.Failure{
		Code: notFound, Reason: "NotFound", Message: "namespaces \"" + server.Namespace + "\" not found", Details: object.Object{"name": server.Namespace, "kind": "namespaces"},
	}
	if c.Name == "" {
		f.Details = nil // the server could not find the requested resource
	}
	return f.Answer()
}

// serverError is an answer of a server in trouble; before says that it did nothing.
func serverError(d *dice.Dice) (a server.Answer, before bool) {
	switch d.Below(5) {
	case 0:
		return server.Refuse(500, "InternalError", "Internal error occurred: etcdserver: leader changed"), d.Chance(0.5)
	case 1:
		return server.Refuse(503, "ServiceUnavailable", "the server is currently unable to handle the request"), true
	case 2:
		return server.Refuse(504, "Timeout", "the server was unable to return a response in the time allotted"), d.Chance(0.5)
	case 3:
		a := server.Refuse(429, "TooManyRequests", "the server has received too many requests")
		if d.Chance(0.5) { // then client-go repeats it by itself
			a.RetryAfter = strconv.Itoa(d.Between(1, 5))
		}
		return a, true
	}
	return server.Refuse(409, "Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"), true
}
