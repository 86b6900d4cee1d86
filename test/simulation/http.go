package simulation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// verbPatch is the verb of every write of idalloc but an Event's.
const verbPatch = "patch"

// failure is an API server's refusal.
type failure struct {
	code            int
	reason, message string
	// details name the object that does not exist.
	details object.Object
}

func (f failure) body() []byte {
	status := object.Object{
		"kind": "Status", "apiVersion": "v1", object.Metadata: object.Object{}, "status": "Failure",
		"message": f.message, "reason": f.reason, "code": f.code,
	}
	if f.details != nil {
		status["details"] = f.details
	}
	return object.Encode(status)
}

// answer is what the server says to a request.
type answer struct {
	code   int
	body   []byte
	stream *stream
	// content is the body's type, JSON if it is empty.
	content string
	err     error // a broken connection, instead of an answer
	// retryAfter is the header of that name, none if it is empty.
	retryAfter string
}

func refuse(code int, reason, message string) answer {
	return answer{code: code, body: failure{code: code, reason: reason, message: message}.body()}
}

// call is one request under way.
type call struct {
	p        *process
	ctx      context.Context //nolint:containedctx // that of the request
	verb     string
	resource string
	name     string
	query    url.Values
	content  string
	metadata bool
	body     []byte
	dice     *dice.Dice
	done     chan answer
	// served, if it is not nil, is told when the server has carried the request out. It returns by how much the answer
	// is late.
	served func(answer) time.Duration
	// lateAnswer draws for how long the answer is held up, if it is not nil.
	lateAnswer *dice.Dice
	// through says that the answer comes through although the process is cut off.
	through bool
}

// transport is a process's way to the API server.
type transport struct{ p *process }

// RoundTrip implements http.RoundTripper. It blocks until the answer came, the context ended, or the
// connection broke, and as long as the process is suspended.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.newCall(req)
	if err != nil {
		return nil, err
	}
	w := t.p.w
	w.mu.Lock()
	w.route(c)
	w.mu.Unlock()
	var a answer
	select {
	case a = <-c.done:
	case <-c.ctx.Done():
		a.err = c.ctx.Err()
	}
	t.p.thawed()
	if a.err != nil {
		return nil, a.err
	}
	response := &http.Response{
		StatusCode: a.code, Status: strconv.Itoa(a.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {cmp.Or(a.content, "application/json")}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)),
	}
	if a.stream != nil {
		response.Body, response.ContentLength = a.stream, -1
	}
	if a.retryAfter != "" {
		response.Header.Set("Retry-After", a.retryAfter)
	}
	return response, nil
}

func (t transport) newCall(req *http.Request) (*call, error) {
	c := &call{
		p: t.p, ctx: req.Context(), query: req.URL.Query(), content: req.Header.Get("Content-Type"), done: make(chan answer, 1),
		metadata: strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	i := len(parts)
	for j, part := range parts {
		if part == "namespaces" {
			i = j + 2
			break
		}
	}
	if i >= len(parts) {
		return nil, fmt.Errorf("simulation: no such path: %s", req.URL.Path)
	}
	c.resource = parts[i]
	if i+1 < len(parts) {
		c.name = parts[i+1]
	}
	c.verb = verbOf(req.Method, c)
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		c.body = body
		_ = req.Body.Close()
	}
	c.dice = t.p.callDice(c)
	return c, nil
}

func verbOf(method string, c *call) string {
	switch {
	case method == http.MethodPatch:
		return verbPatch
	case method == http.MethodPost:
		return "create"
	case c.name != "":
		return "get"
	case c.query.Get("watch") == "true" || c.query.Get("watch") == "1":
		return "watch"
	}
	return "list"
}

// key tells the kinds of requests of a process apart. Two that it makes at one moment differ in their
// context's time.
func (c *call) key() string {
	left := ""
	if deadline, ok := c.ctx.Deadline(); ok {
		left = time.Until(deadline).Round(time.Second).String()
	}
	return c.verb + c.resource + c.name + c.query.Get("labelSelector") + c.query.Get("continue") + left
}

var (
	errRefused = errors.New("simulation: connect: connection refused")
	errReset   = errors.New("simulation: read: connection reset by peer")
	errDead    = errors.New("simulation: this process was killed")
)

// finish answers a call: at once if its process can be reached.
func (c *call) finish(a answer) {
	send := func(a answer) {
		select {
		case c.done <- a:
		default:
		}
	}
	if a.err == nil && !c.through && c.p.hold(func() { send(a) }, func() { send(answer{err: errReset}) }) {
		return
	}
	send(a)
}

// serve carries a request out.
func (s *server) serve(c *call) answer {
	if s.refusals[c.verb+" "+c.resource] {
		k := object.KindOf(c.resource)
		return refuse(http.StatusForbidden, "Forbidden", fmt.Sprintf(
			"%s.%s %q is forbidden: User \"system:serviceaccount:sim:default\" cannot %s resource %q in API group %q in the namespace %q",
			c.resource, k.Group, c.name, c.verb, c.resource, k.Group, namespace))
	}
	switch c.verb {
	case "create": // events
		return answer{code: http.StatusCreated, body: c.body}
	case "get":
		v := s.get(c.resource, c.name)
		if v == nil {
			return s.notFound(c)
		}
		return answer{code: http.StatusOK, body: v.json(c.metadata)}
	case verbPatch:
		return s.patch(c)
	case "list":
		return s.list(c)
	}
	return s.watch(c)
}

func (s *server) notFound(c *call) answer {
	details := object.Object{"name": c.name, "kind": c.resource}
	if group := object.KindOf(c.resource).Group; group != "" {
		details["group"] = group
	}
	f := failure{http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", c.resource, c.name), details}
	return answer{code: f.code, body: f.body()}
}

func (s *server) patch(c *call) answer {
	v := s.get(c.resource, c.name)
	if v == nil {
		return s.notFound(c)
	}
	if s.admission && c.resource != object.Pods {
		return refuse(http.StatusForbidden, "Forbidden", `admission webhook "sim.example.com" denied the request: not now`)
	}
	next, failed := applyPatch(v, c.content, c.body)
	if failed != nil {
		return answer{code: failed.code, body: failed.body()}
	}
	if object.Name(next) != v.name {
		return refuse(http.StatusBadRequest, "BadRequest", "the name of the object does not match the name on the URL")
	}
	manager := c.query.Get("fieldManager")
	stored := s.put(v.kind, next, writer{manager: manager})
	return answer{code: http.StatusOK, body: stored.json(c.metadata)}
}

func (s *server) list(c *call) answer {
	f := s.filter(c.query.Get("labelSelector"), c.query.Get("fieldSelector"))
	rv, after, failed := s.page(c)
	if failed != nil {
		return answer{code: failed.code, body: failed.body()}
	}
	limit := s.limit(c)
	var b bytes.Buffer
	k := object.KindOf(c.resource)
	listKind, apiVersion := k.Name+"List", k.APIVersion
	if c.metadata {
		listKind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	shown, more := "", ""
	objects := s.objects(c.resource)
	if rv < s.rv {
		objects = s.objectsAt(c.resource, rv)
	}
	for _, v := range objects {
		if v.name <= after || !f.matches(v) {
			continue
		}
		if limit == 0 {
			more = fmt.Sprintf(`,"continue":"%d/%s"`, rv, shown)
			break
		}
		limit--
		if shown != "" {
			b.WriteByte(',')
		}
		shown = v.name
		b.Write(v.json(c.metadata))
	}
	head := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s},"items":[`, listKind, apiVersion, rv, more)
	return answer{code: http.StatusOK, body: slices.Concat([]byte(head), b.Bytes(), []byte("]}"))}
}

// page tells of which moment a page of a list is, and after which name it begins. The token that continues a list
// names both.
func (s *server) page(c *call) (rv int64, after string, failed *failure) {
	token := c.query.Get("continue")
	if token == "" {
		return s.cacheVersion(c), "", nil
	}
	moment, after, found := strings.Cut(token, "/")
	rv, err := strconv.ParseInt(moment, 10, 64)
	switch {
	case !found || err != nil:
		return 0, "", &failure{code: http.StatusBadRequest, reason: "BadRequest", message: "continue key is not valid"}
	case c.query.Get("resourceVersion") != "":
		return 0, "", &failure{code: http.StatusBadRequest, reason: "BadRequest", message: "specifying resource version is not allowed when using continue"}
	case rv < s.oldest:
		return 0, "", &failure{code: http.StatusGone, reason: "Expired", message: "The provided continue parameter is too old"}
	}
	return rv, after, nil
}

// limit is how many objects a page has, -1 for all. The cache ignores what a list of it asks for. Pages are small where
// the profile says so, so that lists of a few pods have several.
func (s *server) limit(c *call) int {
	limit, err := strconv.Atoi(c.query.Get("limit"))
	if err != nil || limit <= 0 || c.query.Get("resourceVersion") == "0" {
		return -1
	}
	if small := s.w.profile.PageSize; small > 0 {
		return min(limit, small)
	}
	return limit
}

// cacheVersion is the moment that a list or the beginning of a watch shows: without a resourceVersion now, otherwise
// what the server's cache has, which may be old, but not older than what is asked for.
func (s *server) cacheVersion(c *call) int64 {
	asked := c.query.Get("resourceVersion")
	if asked == "" {
		return s.rv
	}
	rv, err := strconv.ParseInt(asked, 10, 64)
	if err != nil {
		return s.rv
	}
	return min(max(rv, s.rvAgo(c.resource, c.dice.Tail(s.w.profile.CacheLag))), max(s.rv, rv))
}

func (s *server) watch(c *call) answer {
	from, err := strconv.ParseInt(c.query.Get("resourceVersion"), 10, 64)
	initial := c.query.Get("sendInitialEvents") == "true"
	if initial && !s.w.profile.WatchList {
		return refuse(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	if from == 0 && c.query.Get("allowWatchBookmarks") == "true" && s.w.profile.WatchList {
		initial = true // the real server, too, treats it so
	}
	st := &stream{
		s: s, p: c.p, ctx: c.ctx, resource: c.resource, metadata: c.metadata, wake: make(chan struct{}, 1),
		filter: s.filter(c.query.Get("labelSelector"), c.query.Get("fieldSelector")), dice: dice.Derive(c.dice.Next(), "stream"),
	}
	st.last = s.w.now()
	if err == nil && from > 0 && from < s.oldest {
		st.expire() // the real server, too, says so in the watch
		return answer{code: http.StatusOK, stream: st}
	}
	if initial || from == 0 {
		from = s.cacheVersion(c)
		for _, v := range s.objectsAt(c.resource, from) {
			if st.filter.matches(v) {
				st.send("ADDED", v)
			}
		}
		if initial {
			st.bookmark(from, true)
		}
	}
	for _, v := range s.log[c.resource] {
		if v.rv > from {
			st.hear(v)
		}
	}
	s.watchers[c.resource] = append(s.watchers[c.resource], st)
	if seconds, err := strconv.Atoi(c.query.Get("timeoutSeconds")); err == nil {
		s.w.after(time.Duration(seconds)*time.Second+st.dice.Span(0, time.Second), func() { st.end(nil) })
	}
	s.w.after(st.dice.Span(30*time.Second, 90*time.Second), st.remind)
	return answer{code: http.StatusOK, stream: st}
}

// remind sends a bookmark about once a minute.
func (st *stream) remind() {
	if st.ended || st.p.dead {
		return
	}
	st.bookmark(st.s.rv, false)
	st.s.w.after(st.dice.Span(55*time.Second, 65*time.Second), st.remind)
}
