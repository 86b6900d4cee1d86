package server

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

// ErrCut is a watch whose connection broke.
var ErrCut = errors.New("simulation: connection reset by peer")

// Stream is one watch: the body of its response, and what the server still has to send.
type Stream struct {
	s        *Server
	Client   Client
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

// IsFor reports whether the stream is a client's, and of a resource.
func (st *Stream) IsFor(c Client, resource string) bool {
	return st.Client == c && st.resource == resource
}

// hear sends a change to the stream if it concerns it.
func (st *Stream) hear(v *Version) {
	old, now := st.filter.matches(v.Before), st.filter.matches(v)
	switch {
	case now && !old:
		st.send("ADDED", v)
	case now:
		st.send("MODIFIED", v)
	case old:
		st.send("DELETED", v.Before.deleted(v.RV)) // as it was, even when it only ceased to match
	}
}

// send delivers an event in order, a random time later.
func (st *Stream) send(event string, v *Version) {
	st.frame(event, v.json(st.metadata), v.Name)
}

func (st *Stream) frame(event string, body []byte, about string) {
	frame := fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", event, body)
	st.at(st.s.host.EventDelay(st.dice), func() {
		st.s.host.Step("event", st.Client.String(), st.resource, event, about)
		st.deliver(frame, nil)
	})
}

// at runs do after the delay, or after what is due before it.
func (st *Stream) at(delay time.Duration, do func()) {
	due := max(st.s.host.Now()+delay, st.last+time.Nanosecond)
	st.last = due
	st.Client.Deliver(due, do, func() { st.deliver(nil, ErrCut) })
}

// bookmark tells the stream how far it is.
func (st *Stream) bookmark(rv int64, end bool) {
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

// Expire tells the stream that its resourceVersion is too old.
func (st *Stream) Expire() {
	status := Failure{Code: 410, Reason: "Expired", Message: "too old resource version"}
	st.frame("ERROR", status.body(), "expired")
	st.End(nil)
}

// End closes the stream: io.EOF without an error.
func (st *Stream) End(err error) {
	if st.ended {
		return
	}
	st.Forget()
	if err == nil {
		err = io.EOF
	}
	st.at(st.s.host.EventDelay(st.dice), func() { st.deliver(nil, err) })
}

// Forget has the server send nothing more, and the client not know of it.
func (st *Stream) Forget() {
	st.ended = true
	list := st.s.watchers[st.resource]
	if i := slices.Index(list, st); i >= 0 {
		st.s.watchers[st.resource] = slices.Delete(slices.Clone(list), i, i+1)
	}
}

func (st *Stream) deliver(data []byte, err error) {
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
func (st *Stream) Read(p []byte) (int, error) {
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
			st.Client.Thawed()
			return 0, st.ctx.Err()
		case <-st.wake:
		}
	}
}

// Close implements io.Closer.
func (st *Stream) Close() error {
	st.s.host.Alone(func() {
		if !st.ended {
			st.Forget()
		}
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = ErrCut
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
	return nil
}
