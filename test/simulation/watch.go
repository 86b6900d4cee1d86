package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// errCut is a watch whose connection broke.
var errCut = errors.New("simulation: connection reset by peer")

// stream is one watch: the body of its response, and what the server still has to send.
type stream struct {
	s        *server
	p        *process
	ctx      context.Context //nolint:containedctx // that of the request
	resource string
	filter   filter
	metadata bool
	dice     *dice.Dice
	last     time.Duration // when the newest event is due
	ended    bool          // the server forgot it

	mu   sync.Mutex
	data bytes.Buffer
	err  error
	wake chan struct{}
}

// hear sends a change to the stream if it concerns it.
func (st *stream) hear(v *version) {
	old, now := st.filter.matches(v.before), st.filter.matches(v)
	switch {
	case now && !old:
		st.send("ADDED", v)
	case now:
		st.send("MODIFIED", v)
	case old:
		st.send("DELETED", v.before.deleted(v.rv)) // as it was, also when it only ceased to match
	}
}

// send delivers an event in order, a random time later.
func (st *stream) send(event string, v *version) {
	st.frame(event, v.json(st.metadata), v.name)
}

func (st *stream) frame(event string, body []byte, about string) {
	frame := fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", event, body)
	st.at(st.s.w.eventDelay(st.dice), func() {
		st.s.w.step("event", st.p.id, st.resource, event, about)
		st.deliver(frame, nil)
	})
}

// at runs do after the delay, or after what is due before it.
func (st *stream) at(delay time.Duration, do func()) {
	if st.s.prompt {
		do()
		return
	}
	due := max(st.s.w.now()+delay, st.last+time.Nanosecond)
	st.last = due
	st.p.news = max(st.p.news, due)
	st.s.w.after(due-st.s.w.now(), func() {
		if !st.p.hold(do, func() { st.deliver(nil, errCut) }) {
			do()
		}
	})
}

// bookmark tells the stream how far it is.
func (st *stream) bookmark(rv int64, end bool) {
	meta := object.Object{"resourceVersion": strconv.FormatInt(rv, 10), "creationTimestamp": nil}
	if end {
		meta["annotations"] = object.Object{"k8s.io/initial-events-end": "true"}
	}
	k := object.KindOf(st.resource)
	o := object.Object{"kind": k.Name, "apiVersion": k.APIVersion, object.Metadata: meta}
	if st.metadata {
		o["kind"], o["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	st.frame("BOOKMARK", object.Encode(o), strconv.FormatInt(rv, 10))
}

// expire tells the stream that its resourceVersion is too old.
func (st *stream) expire() {
	status := failure{code: 410, reason: "Expired", message: "too old resource version"}
	st.frame("ERROR", status.body(), "expired")
	st.end(nil)
}

// end closes the stream: io.EOF without an error.
func (st *stream) end(err error) {
	if st.ended {
		return
	}
	st.forget()
	if err == nil {
		err = io.EOF
	}
	st.at(st.s.w.eventDelay(st.dice), func() { st.deliver(nil, err) })
}

func (st *stream) forget() {
	st.ended = true
	list := st.s.watchers[st.resource]
	if i := slices.Index(list, st); i >= 0 {
		st.s.watchers[st.resource] = slices.Delete(slices.Clone(list), i, i+1)
	}
}

func (st *stream) deliver(data []byte, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err != nil {
		return
	}
	st.data.Write(data)
	st.err = err
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Read implements io.Reader: it blocks until there is something.
func (st *stream) Read(p []byte) (int, error) {
	for {
		st.mu.Lock()
		if st.data.Len() > 0 {
			n, _ := st.data.Read(p)
			st.mu.Unlock()
			return n, nil
		}
		err := st.err
		st.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-st.ctx.Done():
			st.p.thawed()
			return 0, st.ctx.Err()
		case <-st.wake:
		}
	}
}

// Close implements io.Closer.
func (st *stream) Close() error {
	st.s.w.mu.Lock()
	if !st.ended {
		st.forget()
	}
	st.s.w.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = errCut
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
	return nil
}
