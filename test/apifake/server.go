package apifake

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// Namespace is where all objects are.
const Namespace = "shop"

// Server has objects by their paths. It is safe for concurrent use.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured
	version  int
	requests []string
	changes  []change
	news     chan struct{} // closed by the next change
	ended    chan struct{} // closed when the test ends
	// before may answer a request itself.
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
}

// New starts a server that ends with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{objects: map[string]*unstructured.Unstructured{}, news: make(chan struct{}), ended: make(chan struct{})}
	s.http = httptest.NewServer(s)
	tb.Cleanup(func() {
		close(s.ended) // the server waits for its watches
		s.http.Close()
	})
	return s
}

// Config is how a client finds the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.http.URL, QPS: -1}
}

// Before has f see each request first, and answer it if it says so. f may use the server.
func (s *Server) Before(f func(w http.ResponseWriter, r *http.Request) (answered bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Put stores an object, whatever was there, with the next resourceVersion.
func (s *Server) Put(o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(o.DeepCopy())
}

func (s *Server) put(o *unstructured.Unstructured) {
	o.SetNamespace(Namespace)
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	was := s.objects[pathOf(o)]
	s.objects[pathOf(o)] = o
	s.changed(pathOf(o), was, o)
}

// Change changes what is stored, as another client would.
func (s *Server) Change(apiVersion, kind, name string, do func(o *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.find(apiVersion, kind, name).DeepCopy()
	do(o)
	s.put(o)
}

// Remove removes an object.
func (s *Server) Remove(apiVersion, kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.find(apiVersion, kind, name)
	delete(s.objects, pathOf(was))
	s.version++
	s.changed(pathOf(was), was, nil)
}

// Get returns what is stored, nil for nothing.
func (s *Server) Get(apiVersion, kind, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(apiVersion, kind, name).DeepCopy()
}

func (s *Server) find(apiVersion, kind, name string) *unstructured.Unstructured {
	return s.objects[pathIn(apiVersion, kind, name)]
}

// Requests returns the requests so far, as "GET pods/worker-0" and "GET pods?labels", and forgets them.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

func pathOf(o *unstructured.Unstructured) string {
	return pathIn(o.GetAPIVersion(), o.GetKind(), o.GetName())
}

func pathIn(apiVersion, kind, name string) string {
	root := "/apis/" + apiVersion
	if apiVersion == "v1" {
		root = "/api/v1"
	}
	return path.Join(root, "namespaces", Namespace, strings.ToLower(kind)+"s", name)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	before := s.before
	s.requests = append(s.requests, short(r))
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if isWatch(r) {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		s.create(w, r)
	case s.objects[r.URL.Path] != nil && r.Method == http.MethodPatch:
		s.patch(w, r)
	case s.objects[r.URL.Path] != nil:
		answer(w, http.StatusOK, seenBy(r, s.objects[r.URL.Path]))
	case strings.HasSuffix(r.URL.Path, "s") && r.Method == http.MethodGet:
		s.list(w, r)
	default:
		resource, name := path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path)
		group := ""
		if parts := strings.Split(r.URL.Path, "/"); parts[1] == "apis" {
			group = parts[2]
		}
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Group: group, Kind: resource, Name: name})
	}
}

func short(r *http.Request) string {
	_, object, _ := strings.Cut(r.URL.Path, "/namespaces/"+Namespace+"/")
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		object += "?" + selector
	}
	return r.Method + " " + object
}

// Refuse answers with a Status.
func Refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string, about *metav1.StatusDetails) {
	answer(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: about,
	})
}

func answer(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(what); err != nil {
		panic(err) // what tests store can be encoded
	}
}

// seenBy is an object as the client wants it: whole, or its metadata alone.
func seenBy(r *http.Request, o *unstructured.Unstructured) map[string]any {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
}

// selected returns what tells whether a list or a watch is for an object.
func selected(r *http.Request) (fits func(*unstructured.Unstructured) bool, err error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(o *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return byLabel.Matches(labels.Set(o.GetLabels())) && byField.Matches(fields.Set{"status.phase": phase, "metadata.name": o.GetName()})
	}, nil
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	fits, err := selected(r)
	if err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), nil)
		return
	}
	items := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[name]; path.Dir(name) == r.URL.Path && fits(o) {
			items = append(items, seenBy(r, o))
		}
	}
	kind, apiVersion := "List", "v1"
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	o := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&o.Object); err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), nil)
		return
	}
	if s.objects[pathOf(o)] != nil {
		Refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists", nil)
		return
	}
	s.put(o)
	answer(w, http.StatusCreated, o.Object)
}

// patch applies a JSON Patch. Annotations that it sets are the manager's from then on, and raise a Deployment's generation.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) {
	was := s.objects[r.URL.Path]
	body, err := io.ReadAll(r.Body)
	if err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), nil)
		return
	}
	steps, err := jsonpatch.DecodePatch(body)
	if err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), nil)
		return
	}
	now, err := apply(steps, was)
	if err != nil {
		Refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error(), nil)
		return
	}
	if !maps.Equal(was.GetAnnotations(), now.GetAnnotations()) {
		now.SetManagedFields(managed(r.URL.Query().Get("fieldManager"), was, now))
		if now.GetKind() == "Deployment" {
			now.SetGeneration(was.GetGeneration() + 1)
		}
	}
	s.put(now)
	answer(w, http.StatusOK, seenBy(r, now))
}

func apply(steps jsonpatch.Patch, to *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before, err := to.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := steps.Apply(before)
	if err != nil {
		return nil, err
	}
	now := &unstructured.Unstructured{}
	err = now.UnmarshalJSON(after)
	return now, err
}

func managed(manager string, was, now *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	before := was.GetAnnotations()
	var others []metav1.ManagedFieldsEntry
	changed := map[string]bool{}
	for key, value := range now.GetAnnotations() {
		if old, there := before[key]; !there || old != value {
			changed["f:"+key] = true
		}
	}
	owned := maps.Clone(changed)
	for _, entry := range was.GetManagedFields() {
		keys := Owned(entry)
		maps.DeleteFunc(keys, func(key string, _ bool) bool {
			_, there := now.GetAnnotations()[strings.TrimPrefix(key, "f:")]
			return changed[key] || !there
		})
		if entry.Manager == manager {
			maps.Copy(owned, keys)
			continue
		}
		others = append(others, Entry(entry.Manager, keys))
	}
	return append(others, Entry(manager, owned))
}

// Owned returns the annotations that an entry of managedFields owns, each as "f:" and its key.
func Owned(entry metav1.ManagedFieldsEntry) map[string]bool {
	var f map[string]map[string]map[string]any
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &f) != nil {
		return map[string]bool{}
	}
	out := map[string]bool{}
	for key := range f["f:metadata"]["f:annotations"] {
		out[key] = true
	}
	return out
}

// Entry is an update of a manager that owns these annotations, each as "f:" and its key.
func Entry(manager string, owned map[string]bool) metav1.ManagedFieldsEntry {
	names := make([]string, 0, len(owned))
	for _, key := range slices.Sorted(maps.Keys(owned)) {
		names = append(names, strconv.Quote(key)+":{}")
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{` + strings.Join(names, ",") + `}}}`),
	}
}
