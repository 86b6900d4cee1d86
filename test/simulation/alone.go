package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

// APIServer is the simulated API server by itself: its cluster has no controllers and no kubelets, and nothing goes
// wrong. It is there to be compared with a real one (test/envtest/differential). Beyond what idalloc asks for it answers what
// the simulator's controllers, kubelets and people do by calls of Go: they create, delete, scale and apply, and
// write the status.
type APIServer struct {
	w *world
	t transport
	// misjudge has a Deployment's metadata.generation not follow its annotations, and the others' follow theirs.
	misjudge bool
}

// NewAPIServer returns an API server without objects. Watches from before resourceVersion 1000 are expired.
func NewAPIServer() *APIServer {
	w := newWorld(1, profile.Profile{WatchList: true})
	w.nodes = []*node{{name: "node", rate: 1, down: true}}
	w.server.oldest, w.server.prompt = w.server.rv, true
	return &APIServer{w: w, t: transport{p: w.newProcess("nobody", "nobody", 1, w.nodes[0])}}
}

// Misjudge makes the server wrong about metadata.generation, for a test of the comparison. Call it before the
// objects are created.
func (a *APIServer) Misjudge() { a.misjudge = true }

// RoundTrip implements http.RoundTripper. It blocks for less than a millisecond, or, reading a watch, until
// the request's context ends.
func (a *APIServer) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := a.t.newCall(req)
	if err != nil {
		return nil, err
	}
	do := a.other(req, c)
	if do == nil {
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(c.body))
		return a.t.RoundTrip(req) //nolint:contextcheck // no process is started here
	}
	var out answer
	a.w.alone(func() { out = do(c) })
	return &http.Response{
		StatusCode: out.code, Status: http.StatusText(out.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(out.body)), ContentLength: int64(len(out.body)),
	}, nil
}

// other returns what carries out a request that idalloc does not make, nil for one that it makes.
func (a *APIServer) other(req *http.Request, c *call) func(*call) answer {
	switch {
	case req.Method == http.MethodPost && object.KindOf(c.resource).Name != "":
		return a.create
	case req.Method == http.MethodDelete:
		return a.remove
	case strings.HasSuffix(req.URL.Path, "/status"):
		return a.status
	case strings.HasSuffix(req.URL.Path, "/scale"):
		return a.scale
	case c.content == "application/apply-patch+yaml":
		return a.apply
	}
	return nil
}

func (a *APIServer) create(c *call) answer {
	var o object.Object
	if err := utiljson.Unmarshal(c.body, &o); err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	if a.w.server.get(c.resource, object.Name(o)) != nil {
		return refuse(http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", c.resource, object.Name(o)))
	}
	k := object.KindOf(c.resource)
	if a.misjudge {
		k.AnnotationsCount = !k.AnnotationsCount
	}
	delete(o, "status")
	if c.resource == object.Pods {
		o["status"] = object.Object{"phase": "Pending"}
	}
	v := a.w.server.put(k, o, writer{manager: c.query.Get("fieldManager")})
	return answer{code: http.StatusCreated, body: v.json(c.metadata)}
}

func (a *APIServer) remove(c *call) answer {
	v := a.w.server.get(c.resource, c.name)
	if v == nil {
		return a.w.server.notFound(c)
	}
	var options struct {
		GracePeriodSeconds *int64 `json:"gracePeriodSeconds"`
		Preconditions      struct {
			UID             *string `json:"uid"`
			ResourceVersion *string `json:"resourceVersion"`
		} `json:"preconditions"`
	}
	if err := json.Unmarshal(c.body, &options); err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	if p := options.Preconditions; p.UID != nil && *p.UID != object.UID(v.object) || p.ResourceVersion != nil && *p.ResourceVersion != object.Text(v.object, object.Metadata, "resourceVersion") {
		return refuse(http.StatusConflict, "Conflict", "the precondition does not match")
	}
	grace := time.Duration(object.Number(v.object, "spec", "terminationGracePeriodSeconds")) * time.Second
	if g := options.GracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	switch {
	case c.resource == object.Pods && object.Terminating(v.object) && options.GracePeriodSeconds == nil: // it has its grace
	case c.resource == object.Pods:
		a.w.server.deletePod(c.name, grace)
	default:
		a.w.server.remove(v)
	}
	return answer{code: http.StatusOK, body: v.json(c.metadata)}
}

// changed stores what edit makes of an object.
func (a *APIServer) changed(c *call, by writer, edit func(object.Object)) answer {
	if a.w.server.get(c.resource, c.name) == nil {
		return a.w.server.notFound(c)
	}
	a.w.server.change(c.resource, c.name, by, edit)
	return answer{code: http.StatusOK, body: a.w.server.get(c.resource, c.name).json(c.metadata)}
}

// merged changes one field of the object as a merge patch says.
func (a *APIServer) merged(c *call, field string, by writer) answer {
	return a.changed(c, by, func(o object.Object) {
		patched, err := jsonpatch.MergePatch(object.Encode(o), c.body)
		var next object.Object
		if err == nil && utiljson.Unmarshal(patched, &next) == nil {
			o[field] = next[field]
		}
	})
}

func (a *APIServer) status(c *call) answer {
	return a.merged(c, "status", writer{manager: c.query.Get("fieldManager"), status: true})
}

func (a *APIServer) scale(c *call) answer {
	return a.merged(c, "spec", writer{manager: c.query.Get("fieldManager")})
}

// apply is a server-side apply of annotations.
func (a *APIServer) apply(c *call) answer {
	var o object.Object
	if err := utiljson.Unmarshal(c.body, &o); err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	return a.changed(c, writer{manager: c.query.Get("fieldManager"), apply: true}, func(next object.Object) {
		for key := range object.At(o, object.Metadata, "annotations") {
			object.SetText(next, "annotations", key, object.Annotation(o, key))
		}
	})
}
