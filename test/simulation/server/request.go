package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// The verbs of writes. Events, Leases and evictions of pods are created, Leases are updated, and Leases and pods are deleted. All other writes of
// idalloc are patches.
const (
	VerbPatch  = "patch"
	VerbCreate = "create"
	VerbUpdate = "update"
	VerbDelete = "delete"
)

// Writes reports whether the request changes an object. An Event does not count.
func (r *Request) Writes() bool {
	kept := r.Resource == object.Leases || r.Resource == object.Pods
	return r.Verb == VerbPatch || kept && slices.Contains([]string{VerbCreate, VerbUpdate, VerbDelete}, r.Verb)
}

// IsLaterPage reports whether the request is for a later page of a list.
func (r *Request) IsLaterPage() bool { return r.query.Get("continue") != "" }

// Selector returns the labels that a list asks for.
func (r *Request) Selector() string { return r.query.Get("labelSelector") }

// Client is who makes requests.
type Client interface {
	// String tells clients apart.
	String() string
	// Deliver runs do when an event arrives that is due then, or broken if the connection breaks before.
	Deliver(due time.Duration, do, broken func())
	// IsDead reports whether the client does not listen any more.
	IsDead() bool
	// Thawed blocks while the client is suspended.
	Thawed()
}

// Request is what a client asks for.
type Request struct {
	Client   Client
	Ctx      context.Context //nolint:containedctx // that of the request
	Verb     string
	Resource string
	Name     string
	// Evicts says that the request is for the subresource eviction of a pod.
	Evicts   bool
	query    url.Values
	content  string // the body's type
	metadata bool   // only the metadata of objects is asked for
	Body     []byte
	// Dice decide what the server leaves to chance.
	Dice *dice.Dice
}

// ReadRequest says what an HTTP request of the client asks for. The caller gives it its dice.
func ReadRequest(req *http.Request, from Client) (*Request, error) {
	r := &Request{
		Client: from, Ctx: req.Context(), query: req.URL.Query(), content: req.Header.Get("Content-Type"),
		metadata: strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	_, path, found := strings.Cut(req.URL.Path, "/namespaces/")
	if last := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]; !found && object.KindOf(last).Name != "" { // of all namespaces, of which there is one
		path = Namespace + "/" + last
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 {
		return nil, fmt.Errorf("simulation: no such path: %s", req.URL.Path)
	}
	r.Resource = parts[1]
	if len(parts) > 2 {
		r.Name = parts[2]
	}
	r.Evicts = len(parts) > 3 && parts[3] == "eviction"
	r.Verb = r.verbOf(req.Method)
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.Body = body
		_ = req.Body.Close()
	}
	return r, nil
}

func (r *Request) verbOf(method string) string {
	switch {
	case method == http.MethodPatch:
		return VerbPatch
	case method == http.MethodPost:
		return VerbCreate
	case method == http.MethodPut:
		return VerbUpdate
	case method == http.MethodDelete:
		return VerbDelete
	case r.Name != "":
		return "get"
	case r.query.Get("watch") == "true" || r.query.Get("watch") == "1":
		return "watch"
	}
	return "list"
}

// Key tells the kinds of requests of a process apart. Two that it makes at one moment differ in their
// context's time.
func (r *Request) Key() string {
	left := ""
	if deadline, ok := r.Ctx.Deadline(); ok {
		left = time.Until(deadline).Round(time.Second).String()
	}
	return r.Verb + r.Resource + r.Name + r.query.Get("labelSelector") + r.query.Get("continue") + left
}
