package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// Standalone is the simulated API server by itself, in real time: there are no controllers and no kubelets, and nothing goes
// wrong. It is compared with a real one (test/envtest/differential), and tests of one package run on it (test/apifake). Beyond
// what idalloc asks for it answers what the simulator's controllers, kubelets and people do by calls of Go: they create, delete,
// scale and apply, and write the status.
type Standalone struct {
	server *Server
	// misjudge has a Deployment's metadata.generation not follow its annotations, and the others' follow theirs.
	misjudge bool
}

// NewStandalone returns an API server without objects. Watches from before resourceVersion 1000 are expired.
func NewStandalone() *Standalone {
	s := New(&calm{start: time.Now()}, Settings{WatchList: true})
	s.Compact()
	return &Standalone{server: s}
}

// Misjudge makes the server wrong about metadata.generation, for a test of the comparison. Call it before the
// objects are created.
func (a *Standalone) Misjudge() { a.misjudge = true }

// RoundTrip implements http.RoundTripper. Reading a watch blocks until the request's context ends.
func (a *Standalone) RoundTrip(req *http.Request) (*http.Response, error) {
	r, err := ReadRequest(req, prompt{})
	if err != nil {
		return nil, err
	}
	r.Dice = dice.Derive(1, r.Key())
	do := a.other(req, r)
	if do == nil {
		do = a.server.Serve
	}
	var out Answer
	a.Alone(func(*Server) { out = do(r) })
	return out.Response(req), nil
}

// Alone runs do while no request is served.
func (a *Standalone) Alone(do func(*Server)) {
	a.server.host.Alone(func() { do(a.server) })
}

// calm is a host in which nothing else happens.
type calm struct {
	mu    sync.Mutex
	start time.Time
}

func (h *calm) Now() time.Duration { return time.Since(h.start) }

func (h *calm) After(d time.Duration, do func()) { time.AfterFunc(d, func() { h.Alone(do) }) }

func (h *calm) Alone(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

func (h *calm) EventDelay(*dice.Dice) time.Duration { return 0 }

func (h *calm) Step(string, ...string) {}

func (h *calm) Changed(*Version) {}

// prompt is a client that hears of everything at once: outside of a bubble timers may overtake one another.
type prompt struct{}

// String implements Client.
func (prompt) String() string { return "prompt" }

func (prompt) Deliver(_ time.Duration, do, _ func()) { do() }

func (prompt) IsDead() bool { return false }

func (prompt) Thawed() {}

// other returns what carries out a request that idalloc does not make, nil for one that it makes.
func (a *Standalone) other(req *http.Request, r *Request) func(*Request) Answer {
	switch {
	case req.Method == http.MethodPost && object.KindOf(r.Resource).Name != "":
		return a.create
	case req.Method == http.MethodDelete:
		return a.server.remove
	case strings.HasSuffix(req.URL.Path, "/status"):
		return a.status
	case strings.HasSuffix(req.URL.Path, "/scale"):
		return a.scale
	case r.content == "application/apply-patch+yaml":
		return a.apply
	}
	return nil
}

func (a *Standalone) create(r *Request) Answer {
	var o object.Object
	if err := utiljson.Unmarshal(r.Body, &o); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	if a.server.Get(r.Resource, object.Name(o)) != nil {
		return Refuse(http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", r.Resource, object.Name(o)))
	}
	k := object.KindOf(r.Resource)
	if a.misjudge {
		k.AnnotationsCount = !k.AnnotationsCount
	}
	delete(o, "status")
	if r.Resource == object.Pods {
		o["status"] = object.Object{"phase": "Pending"}
	}
	v := a.server.Put(k, o, Writer{Manager: r.query.Get("fieldManager")})
	return Answer{Code: http.StatusCreated, Body: v.json(r.metadata)}
}

// changed stores what edit makes of an object.
func (a *Standalone) changed(r *Request, by Writer, edit func(object.Object)) Answer {
	if a.server.Get(r.Resource, r.Name) == nil {
		return a.server.notFound(r)
	}
	a.server.Change(r.Resource, r.Name, by, edit)
	return Answer{Code: http.StatusOK, Body: a.server.Get(r.Resource, r.Name).json(r.metadata)}
}

// merged changes one field of the object as a merge patch says.
func (a *Standalone) merged(r *Request, field string, by Writer) Answer {
	return a.changed(r, by, func(o object.Object) {
		patched, err := jsonpatch.MergePatch(object.Encode(o), r.Body)
		var next object.Object
		if err == nil && utiljson.Unmarshal(patched, &next) == nil {
			o[field] = next[field]
		}
	})
}

func (a *Standalone) status(r *Request) Answer {
	return a.merged(r, "status", Writer{Manager: r.query.Get("fieldManager")})
}

func (a *Standalone) scale(r *Request) Answer {
	return a.merged(r, "spec", Writer{Manager: r.query.Get("fieldManager")})
}

// apply is a server-side apply of annotations.
func (a *Standalone) apply(r *Request) Answer {
	var o object.Object
	if err := utiljson.Unmarshal(r.Body, &o); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	return a.changed(r, Writer{Manager: r.query.Get("fieldManager")}, func(next object.Object) {
		for key := range object.At(o, object.Metadata, "annotations") {
			object.SetText(next, "annotations", key, object.Annotation(o, key))
		}
	})
}
