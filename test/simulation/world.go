package simulation

import (
	"context"
	"hash"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

const (
	namespace = "sim"
	ownerName = "worker"
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
	if answer != s.answer || c.verb != s.verb || (c.resource != object.Pods) != s.owner || !d.Chance(s.chance) {
		return 0
	}
	return d.Span(0, 14*time.Second) // less than a request may take
}

// world is one history under way.
type world struct {
	seed    uint64
	start   time.Time
	profile profile.Profile
	trace   io.Writer // nil for none
	// chronicle is nil for none.
	chronicle *Chronicle
	ctx       context.Context //nolint:containedctx // of all processes

	mu        sync.Mutex
	server    *server
	net       network
	nodes     []*node
	processes []*process
	pods      map[string]*kubeletPod
	pending   map[string]bool // reconciliations that are due
	judge     *judge
	steps     int
	faults    map[string]int
	sum       hash.Hash64
	lines     int
	line      []byte       // the newest
	stuck     float64      // of a new pod never to start
	broken    map[int]bool // templates whose programs end by themselves
	quiet     bool         // the faults are over
	over      bool         // all processes have ended
	leaked    string
	podNumber int
	traps     []*trap // of faults that wait for their moment
	waiting   []*waiting
	others    []faultKind // what else goes wrong in this history
	more      int         // how many of them happened because somebody was held up
	serving   *process    // whose request is carried out
}

func newWorld(seed uint64, p profile.Profile) *world {
	w := &world{
		seed: seed, start: time.Now(), ctx: context.Background(), profile: p, pods: map[string]*kubeletPod{}, pending: map[string]bool{}, broken: map[int]bool{},
		faults: map[string]int{}, sum: fnv.New64a(),
	}
	w.net = network{slower: 1}
	w.server = newServer(w)
	w.judge = newJudge(w)
	return w
}

// now is the time since the beginning.
func (w *world) now() time.Duration { return time.Since(w.start) }

// wall is what a right clock shows.
func (w *world) wall() time.Time { return time.Now().UTC() }

// dice returns dice of their own.
func (w *world) dice(words ...string) *dice.Dice { return dice.Derive(w.seed, words...) }

// after runs do at a later moment, alone.
func (w *world) after(d time.Duration, do func()) {
	time.AfterFunc(max(d, 1), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.judge.look()
		w.chronicle.look(w)
		do()
		w.chronicle.look(w)
	})
}

// alone runs do while nothing else changes the world.
func (w *world) alone(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.chronicle.look(w)
}

// step counts and notes one event.
func (w *world) step(what string, about ...string) {
	w.steps++
	w.note(what, about...)
}

// note adds a line to the history.
func (w *world) note(what string, about ...string) {
	w.lines++
	w.line = appendLine(w.line[:0], w.now(), what, about)
	_, _ = w.sum.Write(w.line) // a hash never fails
	if w.trace != nil {
		_, _ = w.trace.Write(w.line)
	}
}

// log adds what a process logs to what is written of the history. It is no part of it: who does not write it down has the same one.
func (w *world) log(p *process, line string) {
	if w.trace != nil {
		_, _ = w.trace.Write(appendLine(nil, w.now(), "log", []string{p.id, line}))
	}
}

// appendLine is fmt's "%14.9f %-9s %s\n" of seconds and words, at a fraction of its price.
func appendLine(b []byte, at time.Duration, what string, about []string) []byte {
	const space, zeros = "         ", "000000000"
	var digits [20]byte
	seconds := strconv.AppendInt(digits[:0], int64(at/time.Second), 10)
	b = append(b, space[:max(0, 4-len(seconds))]...)
	b = append(append(b, seconds...), '.')
	fraction := strconv.AppendInt(digits[:0], int64(at%time.Second), 10)
	b = append(b, zeros[:len(zeros)-len(fraction)]...)
	b = append(append(b, fraction...), ' ')
	b = append(b, what...)
	b = append(b, space[:max(0, len(space)-len(what))]...)
	for _, word := range about {
		b = append(append(b, ' '), word...)
	}
	if len(about) == 0 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// delay is what a request takes, one way.
func (w *world) delay(d *dice.Dice) time.Duration {
	return time.Duration(w.net.slower * float64(d.Tail(w.profile.Latency)))
}

// eventDelay is what a watch event takes.
func (w *world) eventDelay(d *dice.Dice) time.Duration {
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
		w.leaked = p.id + " asks after its end: " + c.verb + " " + c.resource
		w.after(time.Second, func() { c.finish(answer{err: errDead}) })
		return
	case p.dead:
		w.after(c.dice.Span(time.Millisecond, 2*time.Millisecond), func() { c.finish(answer{err: errDead}) })
		return
	case p.frozen:
		p.asleep = append(p.asleep, func() { w.route(c) })
		return
	case p.isCut():
		w.after(c.dice.Span(time.Second, 20*time.Second), func() { c.finish(answer{err: errReset}) })
		return
	}
	d := c.dice
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
	if c.verb == verbPatch && d.Chance(w.net.duplicate) {
		w.faults["duplicated request"]++
		w.after(go1+d.Tail(2*time.Second), func() { w.arrive(c, true) })
	}
	w.after(go1, func() { w.arrive(c, false) })
}

// lose ends a call without an answer: its connection breaks, or it hangs until HTTP/2's pings find that out.
func (w *world) lose(c *call) {
	hangs := c.dice.Span(30*time.Second, time.Minute)
	if c.dice.Chance(0.5) {
		hangs = c.dice.Tail(time.Second)
	}
	w.after(hangs, func() { c.finish(answer{err: errReset}) })
}

// arrive is a request at the server. Nobody waits for the answer to a copy.
func (w *world) arrive(c *call, isCopy bool) {
	if c.p.dead && c.verb != verbPatch {
		return
	}
	d := c.dice
	if isCopy {
		d = dice.Derive(d.Next(), "copy")
	}
	var a answer
	applied := true
	switch {
	case w.server.down:
		a = answer{err: errRefused}
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
	w.step("request", c.p.id, c.verb, c.resource, c.name, strconv.Itoa(a.code), strconv.FormatBool(isCopy))
	if isCopy {
		return
	}
	if c.verb == verbPatch && d.Chance(w.net.killWriter) {
		// Before it hears of it, or while it is at its next step.
		w.after(dice.Pick(d, []time.Duration{1, d.Tail(2 * w.profile.Latency), d.Tail(10 * w.profile.Latency)}), func() { w.kill(c.p) })
	}
	if c.verb == verbPatch && d.Chance(w.net.meddle) {
		w.after(d.Tail(5*w.profile.Latency), func() { w.damage(d) })
	}
	if applied && d.Chance(w.net.lostResponse) {
		w.faults["lost response"]++
		if a.stream != nil {
			a.stream.forget()
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
	w.after(back, func() { c.finish(a) })
}

// serve has the server carry a request out.
func (w *world) serve(c *call) answer {
	w.serving = c.p
	defer func() { w.serving = nil }()
	return w.server.serve(c)
}

// foreign404 is the 404 of a proxy, or of a server that does not know the path: it says nothing of the object.
func foreign404(d *dice.Dice, c *call) answer {
	const notFound = http.StatusNotFound
	switch d.Below(4) {
	case 0:
		return answer{code: notFound, content: "text/html", body: []byte("<html><body><h1>404 Not Found</h1></body></html>")}
	case 1:
		return answer{code: notFound, content: "text/plain; charset=utf-8", body: []byte("404 page not found\n")}
	case 2:
		return answer{code: notFound}
	}
	f := failure{notFound, "NotFound", "namespaces \"" + namespace + "\" not found", object.Object{"name": namespace, "kind": "namespaces"}}
	if c.name == "" {
		f.details = nil // the server could not find the requested resource
	}
	return answer{code: notFound, body: f.body()}
}

// serverError is an answer of a server in trouble; before says that it did nothing.
func serverError(d *dice.Dice) (a answer, before bool) {
	switch d.Below(5) {
	case 0:
		return refuse(500, "InternalError", "Internal error occurred: etcdserver: leader changed"), d.Chance(0.5)
	case 1:
		return refuse(503, "ServiceUnavailable", "the server is currently unable to handle the request"), true
	case 2:
		return refuse(504, "Timeout", "the server was unable to return a response in the time allotted"), d.Chance(0.5)
	case 3:
		a := refuse(429, "TooManyRequests", "the server has received too many requests")
		if d.Chance(0.5) { // then client-go repeats it by itself
			a.retryAfter = strconv.Itoa(d.Between(1, 5))
		}
		return a, true
	}
	return refuse(409, "Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"), true
}

// changed is told of every stored change.
func (w *world) changed(v *version) {
	w.note("stored", v.kind.Resource, v.name, strconv.FormatInt(v.rv, 10))
	w.judge.stored(v)
	switch v.kind.Resource {
	case object.Pods:
		w.kubeletHears(v)
		if w.serving != nil {
			w.tell(aReceiptChanged, w.serving)
		}
	case w.profile.Resource:
		if v.before == nil || !object.EqualBut(object.Object{object.Metadata: object.At(v.object, object.Metadata, "annotations")}, object.Object{object.Metadata: object.At(v.before.object, object.Metadata, "annotations")}) {
			w.tell(anOwnerChanged, w.serving)
		}
	}
	w.wakeControllers(v)
}
