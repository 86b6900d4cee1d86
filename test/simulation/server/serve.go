package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// Serve carries a request out.
func (s *Server) Serve(r *Request) Answer {
	if s.Refusals[r.Verb+" "+r.Resource] || s.Forbids != nil && s.Forbids(r) {
		k := object.KindOf(r.Resource)
		return Refuse(http.StatusForbidden, "Forbidden", fmt.Sprintf(
			"%s.%s %q is forbidden: User \"system:serviceaccount:sim:default\" cannot %s resource %q in API group %q in the namespace %q",
			r.Resource, k.Group, r.Name, r.Verb, r.Resource, k.Group, Namespace))
	}
	switch r.Verb {
	case VerbCreate:
		if r.Resource == object.Leases {
			return s.replace(r, http.StatusCreated)
		}
		if r.Evicts {
			return s.evict(r)
		}
		return s.tell(r)
	case VerbUpdate:
		return s.replace(r, http.StatusOK)
	case "get":
		v := s.Get(r.Resource, r.Name)
		if v == nil {
			return s.notFound(r)
		}
		return Answer{Code: http.StatusOK, Body: v.json(r.metadata)}
	case VerbPatch:
		return s.patch(r)
	case VerbDelete:
		return s.remove(r)
	case "list":
		return s.list(r)
	}
	return s.watch(r)
}

func (s *Server) notFound(r *Request) Answer {
	details := object.Object{"name": r.Name, "kind": r.Resource}
	if group := object.KindOf(r.Resource).Group; group != "" {
		details["group"] = group
	}
	return Failure{http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", r.Resource, r.Name), details}.Answer()
}

func (s *Server) patch(r *Request) Answer {
	v := s.Get(r.Resource, r.Name)
	if v == nil {
		return s.notFound(r)
	}
	if s.Admission && r.Resource != object.Pods {
		return Refuse(http.StatusForbidden, "Forbidden", `admission webhook "sim.example.com" denied the request: not now`)
	}
	if s.Refuses != nil {
		if why := s.Refuses(v); why != "" {
			return Refuse(http.StatusForbidden, "Forbidden", fmt.Sprintf("%s %q is forbidden: %s", r.Resource, v.Name, why))
		}
	}
	next, failed := applyPatch(v, r.content, r.Body)
	if failed != nil {
		return failed.Answer()
	}
	if object.Name(next) != v.Name {
		return Refuse(http.StatusBadRequest, "BadRequest", "the name of the object does not match the name on the URL")
	}
	if version(next) != version(v.Object) {
		return modified(r)
	}
	if refused := s.judge(Write{Operation: "UPDATE", Kind: v.Kind, Name: v.Name, Old: v.Object, Next: next}); refused != nil {
		return refused.Answer()
	}
	if s.Mutates != nil {
		s.Mutates(next)
	}
	if r.query.Get("dryRun") != "" {
		return Answer{Code: http.StatusOK, Body: (&Version{Kind: v.Kind, Name: v.Name, Object: next}).json(r.metadata)}
	}
	stored := s.Put(v.Kind, next, Writer{Manager: r.query.Get("fieldManager")})
	return Answer{Code: http.StatusOK, Body: stored.json(r.metadata)}
}

// tell takes an Event. It is not kept.
func (s *Server) tell(r *Request) Answer {
	var event object.Object
	if err := utiljson.Unmarshal(r.Body, &event); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	events := object.Kind{Resource: r.Resource, Name: "Event", APIVersion: "v1"}
	if refused := s.judge(Write{Operation: "CREATE", Kind: events, Name: object.Name(event), Next: event}); refused != nil {
		return refused.Answer()
	}
	return Answer{Code: http.StatusCreated, Body: r.Body}
}

// judge asks whether an admission policy refuses a write.
func (s *Server) judge(w Write) *Failure {
	if s.Judge == nil {
		return nil
	}
	if says := s.Judge(w); says != "" {
		return &Failure{Code: http.StatusForbidden, Reason: "Forbidden", Message: fmt.Sprintf("%s %q is forbidden: ValidatingAdmissionPolicy denied request: %s", w.Kind.Resource, w.Name, says)}
	}
	return nil
}

func version(o object.Object) string { return object.Text(o, object.Metadata, "resourceVersion") }

func modified(r *Request) Answer {
	return Refuse(http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified", r.Resource, r.Name))
}

// replace creates an object, or puts another in the place of one that has the resourceVersion that the request names.
func (s *Server) replace(r *Request, code int) Answer {
	var next object.Object
	if err := utiljson.Unmarshal(r.Body, &next); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	v := s.Get(r.Resource, object.Name(next))
	switch {
	case code == http.StatusCreated && v != nil:
		return Refuse(http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", r.Resource, v.Name))
	case code == http.StatusOK && v == nil && object.UID(next) != "": // unlike most objects, a Lease is made by an update
		return Refuse(http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: Precondition failed: UID in precondition: %s, UID in object meta: ", r.Resource, object.Name(next), object.UID(next)))
	case code == http.StatusOK && v == nil:
		code = http.StatusCreated
	case v != nil && version(v.Object) != version(next):
		return modified(r)
	}
	write := Write{Operation: "CREATE", Kind: object.KindOf(r.Resource), Name: object.Name(next), Next: next}
	if v != nil {
		write.Operation, write.Old = "UPDATE", v.Object
	}
	if refused := s.judge(write); refused != nil {
		return refused.Answer()
	}
	if s.MutatesLease != nil {
		s.MutatesLease(next)
	}
	stored := s.Put(object.KindOf(r.Resource), next, Writer{Manager: r.query.Get("fieldManager")})
	return Answer{Code: code, Body: stored.json(r.metadata)}
}

// remove deletes an object, if it is the one that the request names.
func (s *Server) remove(r *Request) Answer {
	v := s.Get(r.Resource, r.Name)
	if v == nil {
		return s.notFound(r)
	}
	var options deletion
	if err := json.Unmarshal(r.Body, &options); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	return s.removeAs(r, v, options)
}

// deletion is what a request says of how an object is deleted.
type deletion struct {
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds"`
	Preconditions      struct {
		UID             *string `json:"uid"`
		ResourceVersion *string `json:"resourceVersion"`
	} `json:"preconditions"`
}

// evict deletes a pod if a budget lets it go. That of a pod that is being deleted, or that runs nowhere, asks none.
func (s *Server) evict(r *Request) Answer {
	v := s.Get(r.Resource, r.Name)
	if v == nil {
		return s.notFound(r)
	}
	var eviction struct {
		DeleteOptions deletion `json:"deleteOptions"`
	}
	if err := json.Unmarshal(r.Body, &eviction); err != nil {
		return Refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	pending := object.Text(v.Object, "status", "phase") == "Pending"
	if s.Budget != nil && !pending && !object.Terminating(v.Object) && !s.Budget(v) {
		return Refuse(http.StatusTooManyRequests, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
	}
	a := s.removeAs(r, v, eviction.DeleteOptions)
	if a.Code == http.StatusOK {
		a.Code, a.Body = http.StatusCreated, r.Body
	}
	return a
}

func (s *Server) removeAs(r *Request, v *Version, options deletion) Answer {
	if p := options.Preconditions; p.UID != nil && *p.UID != object.UID(v.Object) || p.ResourceVersion != nil && *p.ResourceVersion != version(v.Object) {
		return Refuse(http.StatusConflict, "Conflict", "the precondition does not match")
	}
	write := Write{Operation: "DELETE", Kind: v.Kind, Name: v.Name, Old: v.Object, Options: object.Object{}}
	if g := options.GracePeriodSeconds; g != nil {
		write.Options["gracePeriodSeconds"] = *g
	}
	if r.Evicts {
		write = Write{Operation: "CREATE", Kind: v.Kind, Subresource: "eviction", Name: v.Name, Next: object.Object{"deleteOptions": write.Options}}
	}
	if refused := s.judge(write); refused != nil {
		return refused.Answer()
	}
	grace := time.Duration(object.Number(v.Object, "spec", "terminationGracePeriodSeconds")) * time.Second
	if g := options.GracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	switch {
	case r.Resource == object.Pods && object.Terminating(v.Object) && options.GracePeriodSeconds == nil: // it has its grace
	case r.Resource == object.Pods:
		s.DeletePod(r.Name, grace)
	default:
		s.Remove(v)
	}
	return Answer{Code: http.StatusOK, Body: v.json(r.metadata)}
}

func (s *Server) list(r *Request) Answer {
	f := s.filter(r.query.Get("labelSelector"), r.query.Get("fieldSelector"))
	rv, after, failed := s.page(r)
	if failed != nil {
		return failed.Answer()
	}
	limit := s.limit(r)
	var b bytes.Buffer
	k := object.KindOf(r.Resource)
	listKind, apiVersion := k.Name+"List", k.APIVersion
	if r.metadata {
		listKind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	shown, more := "", ""
	page := &Page{RV: rv}
	objects := s.Objects(r.Resource)
	if rv < s.rv {
		objects = s.objectsAt(r.Resource, rv)
	}
	for _, v := range objects {
		if v.Name <= after || !f.matches(v) {
			continue
		}
		if limit == 0 {
			more, page.More = fmt.Sprintf(`,"continue":"%d/%s"`, rv, shown), true
			break
		}
		limit--
		if shown != "" {
			b.WriteByte(',')
		}
		shown = v.Name
		b.Write(v.json(r.metadata))
		page.Objects = append(page.Objects, v)
	}
	head := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s},"items":[`, listKind, apiVersion, rv, more)
	return Answer{Code: http.StatusOK, Body: slices.Concat([]byte(head), b.Bytes(), []byte("]}")), Page: page}
}

// page tells of which moment a page of a list is, and after which name it begins. The token that continues a list
// names both.
func (s *Server) page(r *Request) (rv int64, after string, failed *Failure) {
	token := r.query.Get("continue")
	if token == "" {
		return s.cacheVersion(r), "", nil
	}
	moment, after, found := strings.Cut(token, "/")
	rv, err := strconv.ParseInt(moment, 10, 64)
	switch {
	case !found || err != nil:
		return 0, "", &Failure{Code: http.StatusBadRequest, Reason: "BadRequest", Message: "continue key is not valid"}
	case r.query.Get("resourceVersion") != "":
		return 0, "", &Failure{Code: http.StatusBadRequest, Reason: "BadRequest", Message: "specifying resource version is not allowed when using continue"}
	case rv < s.oldest:
		return 0, "", &Failure{Code: http.StatusGone, Reason: "Expired", Message: "The provided continue parameter is too old"}
	}
	return rv, after, nil
}

// limit is how many objects a page has, -1 for all. The cache ignores what a list of it asks for. Pages are small where
// the profile says so, so that lists of a few pods have several.
func (s *Server) limit(r *Request) int {
	limit, err := strconv.Atoi(r.query.Get("limit"))
	if err != nil || limit <= 0 || r.query.Get("resourceVersion") == "0" {
		return -1
	}
	if small := s.PageSize; small > 0 {
		return min(limit, small)
	}
	return limit
}

// cacheVersion is the moment that a list or the beginning of a watch shows: without a resourceVersion now, otherwise
// what the server's cache has, which may be old, but not older than what is asked for.
func (s *Server) cacheVersion(r *Request) int64 {
	asked := r.query.Get("resourceVersion")
	if asked == "" {
		return s.rv
	}
	rv, err := strconv.ParseInt(asked, 10, 64)
	if err != nil {
		return s.rv
	}
	age := time.Duration(0)
	if s.CacheLag > 0 {
		age = r.Dice.Tail(s.CacheLag)
	}
	return min(max(rv, s.rvAgo(r.Resource, age)), max(s.rv, rv))
}

func (s *Server) watch(r *Request) Answer {
	from, err := strconv.ParseInt(r.query.Get("resourceVersion"), 10, 64)
	initial := r.query.Get("sendInitialEvents") == "true"
	if initial && !s.WatchList {
		return Refuse(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	if from == 0 && r.query.Get("allowWatchBookmarks") == "true" && s.WatchList {
		initial = true // the real server, too, treats it so
	}
	st := &Stream{
		s: s, Client: r.Client, ctx: r.Ctx, resource: r.Resource, metadata: r.metadata, wake: make(chan struct{}, 1),
		filter: s.filter(r.query.Get("labelSelector"), r.query.Get("fieldSelector")), dice: dice.Derive(r.Dice.Next(), "stream"),
	}
	st.last = s.host.Now()
	if err == nil && from > 0 && from < s.oldest {
		st.Expire() // the real server, too, says so in the watch
		return Answer{Code: http.StatusOK, Stream: st}
	}
	if initial || from == 0 {
		from = s.cacheVersion(r)
		for _, v := range s.objectsAt(r.Resource, from) {
			if st.filter.matches(v) {
				st.send("ADDED", v)
			}
		}
		if initial {
			st.bookmark(from, true)
		}
	}
	for _, v := range s.log[r.Resource] {
		if v.RV > from {
			st.hear(v)
		}
	}
	s.watchers[r.Resource] = append(s.watchers[r.Resource], st)
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil {
		s.host.After(time.Duration(seconds)*time.Second+st.dice.Span(0, time.Second), func() { st.End(nil) })
	}
	s.host.After(st.dice.Span(30*time.Second, 90*time.Second), st.remind)
	return Answer{Code: http.StatusOK, Stream: st}
}

// remind sends a bookmark about once a minute.
func (st *Stream) remind() {
	if st.ended || st.Client.IsDead() {
		return
	}
	st.bookmark(st.s.rv, false)
	st.s.host.After(st.dice.Span(55*time.Second, 65*time.Second), st.remind)
}
