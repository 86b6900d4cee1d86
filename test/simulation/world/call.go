package world

import (
	"errors"
	"net/http"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Call is one request under way.
type Call struct {
	*server.Request
	Process *Process
	done    chan server.Answer
	sent    int // its number
	// Served, if it is not nil, is told when the server has carried the request out. It returns by how much the answer
	// is late.
	Served func(server.Answer) time.Duration
	// lateAnswer draws for how long the answer is held up, if it is not nil.
	lateAnswer *dice.Dice
	// Through says that the answer comes through although the process is cut off.
	Through bool
}

// transport is a process's way to the API server.
type transport struct{ p *Process }

// RoundTrip implements http.RoundTripper. It blocks until the answer came, the context ended, or the
// connection broke, and as long as the process is suspended.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.newCall(req)
	if err != nil {
		return nil, err
	}
	w := t.p.w
	w.mu.Lock()
	w.lastSent++
	c.sent = w.lastSent
	w.route(c)
	w.mu.Unlock()
	var a server.Answer
	select {
	case a = <-c.done:
	case <-c.Ctx.Done():
		a.Err = c.Ctx.Err()
	}
	t.p.Thawed()
	if a.Err != nil {
		return nil, a.Err
	}
	return a.Response(req), nil
}

func (t transport) newCall(req *http.Request) (*Call, error) {
	r, err := server.ReadRequest(req, t.p)
	if err != nil {
		return nil, err
	}
	r.Dice = t.p.callDice(r)
	return &Call{Request: r, Process: t.p, done: make(chan server.Answer, 1)}, nil
}

var (
	errRefused = errors.New("simulation: connect: connection refused")
	errReset   = errors.New("simulation: read: connection reset by peer")
	errDead    = errors.New("simulation: this process was killed")
)

// finish answers a call: at once if its process can be reached.
func (c *Call) finish(a server.Answer) {
	send := func(a server.Answer) {
		select {
		case c.done <- a:
		default:
		}
	}
	if a.Err == nil && !c.Through && c.Process.hold(func() { send(a) }, func() { send(server.Answer{Err: errReset}) }) {
		return
	}
	send(a)
}
