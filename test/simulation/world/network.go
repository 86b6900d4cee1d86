package world

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Network is how requests fare at this moment, as probabilities.
type Network struct {
	LostRequest, LostResponse, Duplicate, Late, Failed float64
	Repeats                                            float64       // of an answer to be one after which a client is to send the request again
	Mute                                               bool          // nothing arrives, and connections stay open
	Swallows                                           bool          // what arrives is done, and no answer comes
	Astray                                             float64       // of a request to be answered by a server that is not the API server
	Slower                                             float64       // factor of all delays
	Silent                                             float64       // of an event to be minutes late
	Behind                                             time.Duration // by how much later each event is, on average
	Stall                                              Stall
	KillWriter                                         float64 // of a process to be killed right after a write of its own
	KillSender                                         float64 // of a process to be killed while a write of its own is under way
	Meddle                                             float64 // of the owner to be damaged right after a write
	HoldUp                                             HoldUp
}

// disturbance is one change of how requests fare.
type disturbance struct{ change func(*Network) }

// Disturb changes for a while how requests fare, beside all other disturbances.
func (w *World) Disturb(lasts time.Duration, change func(*Network)) {
	one := &disturbance{change: change}
	w.disturbed = append(w.disturbed, one)
	w.disturb()
	w.After(lasts, func() {
		w.disturbed = slices.DeleteFunc(w.disturbed, func(d *disturbance) bool { return d == one })
		w.disturb()
	})
}

// disturb brings the network up to date.
func (w *World) disturb() {
	w.Network = Network{Slower: 1}
	for _, d := range w.disturbed {
		d.change(&w.Network)
	}
}

// Stall is one kind of request that takes long, there or back, while the client waits: that holds a protocol between
// two of its steps.
type Stall struct {
	Chance float64
	Verb   string
	Owner  bool // requests about the owner, not about pods
	Answer bool // on the way back
	// Longest is how long it takes at most, if that is not 0.
	Longest time.Duration
}

// delay is what the stall adds to a request.
func (s Stall) delay(c *Call, answer bool, d *dice.Dice) time.Duration {
	if answer != s.Answer || c.Verb != s.Verb || (c.Resource != object.Pods) != s.Owner || !d.Chance(s.Chance) {
		return 0
	}
	return d.Span(0, cmp.Or(s.Longest, 14*time.Second)) // less than a request may take
}

// delay is what a request takes, one way.
func (w *World) delay(d *dice.Dice) time.Duration {
	return time.Duration(w.Network.Slower * float64(d.Tail(w.Profile.Latency)))
}

// EventDelay is what a watch event takes.
func (w *World) EventDelay(d *dice.Dice) time.Duration {
	if w.Network.Mute || w.Network.Swallows || d.Chance(w.Network.Silent) {
		return d.Span(10*time.Second, 3*time.Minute)
	}
	late := time.Duration(w.Network.Slower * float64(d.Tail(w.Profile.WatchLag)))
	if w.Network.Behind > 0 {
		late += d.Tail(w.Network.Behind)
	}
	return late
}

// route sends a request on its way.
func (w *World) route(c *Call) {
	p := c.Process
	if !c.IsLaterPage() { // the pages here are a hundred times smaller than real ones
		p.Calls++
	}
	if c.Verb == server.VerbPatch && c.Resource == w.Profile.Resource {
		p.Proposals++
	}
	if w.trapped(c) || w.holdsUp(c) {
		return
	}
	switch {
	case w.over && p.Controls && c.Resource == "events": // client-go sends them for two minutes
		w.After(time.Second, func() { c.finish(server.Answer{Err: errDead}) })
		return
	case w.over:
		w.leaked = p.ID + " asks after its end: " + c.Verb + " " + c.Resource
		w.After(time.Second, func() { c.finish(server.Answer{Err: errDead}) })
		return
	case p.Dead:
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
	if c.Writes() && d.Chance(w.Network.KillSender) {
		w.orphan(c)
		return
	}
	w.meetOrphans(p, d)
	if p.frozen {
		p.asleep = append(p.asleep, func() { w.route(c) })
		return
	}
	go1 := w.delay(d)
	go1 += w.Network.Stall.delay(c, false, d)
	if w.Network.Mute {
		w.After(p.pings(d), func() { c.finish(server.Answer{Err: errReset}) })
		return
	}
	if d.Chance(w.Network.LostRequest) {
		w.Faults["lost request"]++
		w.lose(c)
		return
	}
	if d.Chance(w.Network.Late) {
		w.Faults["late request"]++
		go1 += d.Span(time.Second, 90*time.Second)
	}
	if c.Writes() && d.Chance(w.Network.Duplicate) {
		w.Faults["duplicated request"]++
		w.After(go1+d.Tail(2*time.Second), func() { w.Arrive(c, true) })
	}
	w.After(go1, func() { w.Arrive(c, false) })
}

// pings draws when a process finds out that a connection says nothing.
func (p *Process) pings(d *dice.Dice) time.Duration {
	if f := p.FenceAfter; f > 0 {
		return d.Span(f/20, f/10)
	}
	return d.Span(2*time.Second, 5*time.Second)
}

// lose ends a call without an answer: its connection breaks, or it hangs until HTTP/2's pings find that out.
func (w *World) lose(c *Call) {
	hangs := c.Dice.Span(30*time.Second, time.Minute)
	if c.Dice.Chance(0.5) {
		hangs = c.Dice.Tail(time.Second)
	}
	w.After(hangs, func() { c.finish(server.Answer{Err: errReset}) })
}

// Arrive is a request at the server. No process waits for the answer to a copy.
func (w *World) Arrive(c *Call, isCopy bool) {
	if c.Process.Dead && !c.Writes() {
		c.finish(server.Answer{Err: errDead})
		return
	}
	d := c.Dice
	if isCopy {
		d = dice.Derive(d.Next(), "copy")
	}
	var a server.Answer
	applied := true
	switch {
	case w.Down:
		a = server.Answer{Err: errRefused}
	case w.Unauthorized || !w.accepts(c.Process):
		a, applied = server.Refuse(http.StatusUnauthorized, "Unauthorized", "Unauthorized"), false
	case d.Chance(w.Network.Astray):
		w.Faults["foreign 404"]++
		a, applied = foreign404(d, c), false
	case d.Chance(w.Network.Repeats):
		w.Faults["answer to repeat"]++
		a, applied = w.repeatable(c, d), false
	case d.Chance(w.Network.Failed):
		w.Faults["server error"]++
		var before bool
		a, before = serverError(d)
		if !before {
			w.serve(c) // it fails after it did it
		}
		applied = false
	default:
		a = w.serve(c)
	}
	note := w.Step
	if c.Process.Controls && c.Resource == object.Leases {
		note = w.Note // of the election: there are thousands
	}
	note("request", c.Process.ID, c.Verb, c.Resource, c.Name, strconv.Itoa(a.Code), strconv.FormatBool(isCopy))
	if isCopy {
		return
	}
	if c.Writes() && d.Chance(w.Network.KillWriter) {
		// Before it hears of it, or while it is at its next step.
		w.After(dice.Pick(d, []time.Duration{1, d.Tail(2 * w.Profile.Latency), d.Tail(10 * w.Profile.Latency)}), func() { w.Kill(c.Process) })
	}
	if c.Writes() && d.Chance(w.Network.Meddle) {
		w.After(d.Tail(5*w.Profile.Latency), func() { w.Mischief.Damage(d) })
	}
	if w.Network.Swallows {
		if a.Stream != nil {
			a.Stream.Forget()
		}
		w.After(c.Process.pings(d), func() { c.finish(server.Answer{Err: errReset}) })
		return
	}
	if applied && d.Chance(w.Network.LostResponse) {
		w.Faults["lost response"]++
		if a.Stream != nil {
			a.Stream.Forget()
		}
		w.lose(c)
		return
	}
	if c.lateAnswer != nil {
		w.until(c.Process, c.lateAnswer, func() { c.finish(a) })
		return
	}
	back := w.delay(d) + w.Network.Stall.delay(c, true, d)
	if c.Served != nil && !w.Quiet { // one that was held up until all is well is answered, no more
		back += c.Served(a)
	}
	w.After(back, func() { c.finish(a) })
}

// accepts reports whether the server accepts the token of a process. For ten seconds after it did so it does not look again.
func (w *World) accepts(p *Process) bool {
	if !w.bound || p.UID == "" || w.Now() < p.accepted {
		return true
	}
	pod := w.Server.Get(object.Pods, p.Pod)
	if pod == nil || object.UID(pod.Object) != p.UID {
		return false
	}
	p.accepted = w.Now() + 10*time.Second
	return true
}

// serve has the server carry a request out.
func (w *World) serve(c *Call) server.Answer {
	w.Serving, w.Request, w.Sent, w.Evicting = c.Process, c.Request, c.sent, c.Evicts
	defer func() { w.Serving, w.Request, w.Sent, w.Evicting = nil, nil, 0, false }()
	a := w.Server.Serve(c.Request)
	if w.Answered != nil {
		w.Answered(c.Process, c.Request, a)
	}
	if c.Verb == "list" && c.Resource == object.Pods {
		w.tell(aListServed, c.Process)
	}
	return a
}

// foreign404 is the 404 of a proxy, or of a server that does not know the path: it says nothing of the object.
func foreign404(d *dice.Dice, c *Call) server.Answer {
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

// repeatable is an answer for which client-go sends a request again, whatever it is: its code is 429 or above 499, and it has a Retry-After. A
// proxy that says so may have passed the request on, now or a while later.
func (w *World) repeatable(c *Call, d *dice.Dice) server.Answer {
	switch late := d.Tail(2 * time.Second); {
	case d.Chance(0.4):
		w.serve(c)
	case c.Writes() && d.Chance(0.5):
		w.After(late, func() { w.Arrive(c, true) })
	}
	a := server.Refuse(dice.Pick(d, []int{429, 500, 502, 503, 504}), "ServiceUnavailable", "the server is currently unable to handle the request")
	a.RetryAfter = strconv.Itoa(d.Between(1, 3))
	return a
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
