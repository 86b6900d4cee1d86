package store

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// Fields of every object.
const (
	apiVersionField = "apiVersion"
	metadataField   = "metadata"
)

const (
	podPath   = "/api/v1/namespaces/shop/pods/worker-a"
	ownerPath = "/apis/apps/v1/namespaces/shop/deployments/worker"
)

// shelf is an API server with a few objects.
type shelf struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	// refusal, if set, is the answer to each write. reading, if set, is the answer to each read.
	refusal, reading *metav1.Status
	// admits, if set, changes what a write would leave.
	admits func(object map[string]any)
	// listed are the field selectors of the lists that came.
	listed []string
	// sent are the writes that came: method, path and field manager.
	sent []string
	// body is that of the last write.
	body []byte
}

func newShelf(t *testing.T, objects map[string]map[string]any) (*shelf, *Store) {
	t.Helper()
	if objects == nil {
		objects = map[string]map[string]any{}
	}
	s := &shelf{objects: objects}
	return s, answering(t, s.ServeHTTP)
}

func aPod(annotations, labels map[string]any) map[string]any {
	meta := map[string]any{"name": "worker-a", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	if labels != nil {
		meta["labels"] = labels
	}
	return map[string]any{apiVersionField: "v1", "kind": "Pod", metadataField: meta}
}

// change changes the metadata of an object, and with it the version.
func (s *shelf) change(path, key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raise(s.objects[path])
	metaOf(s.objects[path])[key] = value
}

// raise gives an object another version.
func raise(o map[string]any) {
	if version, known := metaOf(o)["resourceVersion"].(string); known {
		metaOf(o)["resourceVersion"] = version + "0"
	}
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", jsonType)
	if r.Method == http.MethodGet {
		s.read(w, r)
		return
	}
	s.sent = append(s.sent, r.Method+" "+r.URL.Path+" as "+r.URL.Query().Get("fieldManager"))
	s.body, _ = io.ReadAll(r.Body)
	if s.refusal != nil {
		say(w, s.refusal)
		return
	}
	path, after, refused := s.written(r)
	if refused != nil {
		say(w, refused)
		return
	}
	if s.admits != nil {
		s.admits(after)
	}
	s.objects[path] = after
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	send(w, after)
}

func (s *shelf) read(w http.ResponseWriter, r *http.Request) {
	o, there := s.objects[r.URL.Path]
	switch {
	case s.reading != nil:
		say(w, s.reading)
	case there:
		send(w, o)
	case r.URL.Query().Get("labelSelector") != "":
		s.listed = append(s.listed, r.URL.Query().Get("fieldSelector"))
		send(w, s.list(r.URL.Path, r.URL.Query().Get("labelSelector")))
	default:
		say(w, missing(r.URL.Path))
	}
}

// list returns the objects of a path that have these labels.
func (s *shelf) list(path, selector string) map[string]any {
	selects, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	items := []any{}
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		text, _ := json.Marshal(s.objects[at]) //nolint:errchkjson // a test's own object
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(text, &o); err != nil {
			panic(err)
		}
		if strings.HasPrefix(at, path+"/") && selects.Matches(labels.Set(o.Labels)) {
			items = append(items, s.objects[at])
		}
	}
	if strings.HasSuffix(path, "/pods") {
		return map[string]any{apiVersionField: "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", metadataField: map[string]any{}, "items": items}
	}
	return map[string]any{apiVersionField: "coordination.k8s.io/v1", "kind": "LeaseList", metadataField: map[string]any{}, "items": items}
}

// written returns what a write leaves, and where.
func (s *shelf) written(r *http.Request) (path string, after map[string]any, refused *metav1.Status) {
	o, there := s.objects[r.URL.Path]
	var err error
	switch r.Method {
	case http.MethodPatch:
		if after, err = patched(o, s.body, types.PatchType(r.Header.Get("Content-Type"))); err == nil {
			if metaOf(after)["resourceVersion"] != metaOf(o)["resourceVersion"] {
				return "", nil, modified()
			}
			raise(after)
		}
	case http.MethodPost:
		if err = json.Unmarshal(s.body, &after); err == nil {
			path = r.URL.Path + "/" + metaOf(after)["name"].(string) //nolint:errcheck,forcetypeassert // every object has a name
			if _, there = s.objects[path]; there {
				return "", nil, &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: "exists"}
			}
			metaOf(after)["resourceVersion"] = "1"
			return path, after, nil
		}
	case http.MethodPut:
		if !there {
			return "", nil, missing(r.URL.Path)
		}
		if err = json.Unmarshal(s.body, &after); err == nil {
			if metaOf(after)["resourceVersion"] != metaOf(o)["resourceVersion"] {
				return "", nil, modified()
			}
			raise(after)
		}
	}
	if err != nil {
		return "", nil, &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error()}
	}
	return r.URL.Path, after, nil
}

func modified() *metav1.Status {
	return &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "changed"}
}

func metaOf(o map[string]any) map[string]any {
	return o[metadataField].(map[string]any) //nolint:errcheck,forcetypeassert // every object has metadata
}

func patched(o map[string]any, body []byte, kind types.PatchType) (after map[string]any, err error) {
	before, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var text []byte
	if kind == types.StrategicMergePatchType {
		text, err = strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
	} else {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(before)
		}
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &after)
	return after, err
}

func say(w http.ResponseWriter, s *metav1.Status) {
	said := *s
	said.TypeMeta, said.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	w.WriteHeader(int(said.Code))
	send(w, said)
}

func send(w io.Writer, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text) // the client notices what is missing
}

// missing is what an API server says of an object that it does not have.
func missing(path string) *metav1.Status {
	parts := strings.Split(path, "/")
	group := ""
	if parts[1] == "apis" {
		group = parts[2]
	}
	said := apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: parts[len(parts)-2]}, parts[len(parts)-1]).ErrStatus
	return &said
}

func read(t *testing.T, s *Store) *metav1.PartialObjectMetadata {
	t.Helper()
	pod, err := s.GetPod(t.Context(), "shop", "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func theRef() kinds.Ref {
	return kinds.Ref{APIVersion: testAPIVersion, Kind: kinds.Deployment, Namespace: "shop", Name: testName}
}

func aWorker(annotations map[string]any) map[string]any {
	meta := map[string]any{"name": testName, "namespace": "shop", "uid": "o", "resourceVersion": "1", "generation": 7}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	return map[string]any{
		apiVersionField: testAPIVersion, "kind": kinds.Deployment, metadataField: meta,
		"spec": map[string]any{"replicas": 3, "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}},
	}
}
