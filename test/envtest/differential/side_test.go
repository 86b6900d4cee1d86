package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// object is an API object as JSON has it.
type object = map[string]any

const (
	metadata    = "metadata"
	annotations = "annotations"
	replicas    = "replicas"
	status      = "status"
	apiVersion  = "apiVersion"
	// annotationsPath is where they are.
	annotationsPath = "/metadata/annotations"
	jsonPatch       = "application/json-patch+json"
	mergePatch      = "application/merge-patch+json"
)

// Resources, as they stand in paths.
const (
	pods         = "pods"
	deployments  = "deployments"
	statefulSets = "statefulsets"
	replicaSets  = "replicasets"
	jobs         = "jobs"
	leases       = "leases"
)

// ref returns the owner of a resource and a name.
func (s *side) ref(resource, name string) kinds.Ref {
	of := map[string]kinds.Ref{
		deployments: {APIVersion: "apps/v1", Kind: kinds.Deployment}, statefulSets: {APIVersion: "apps/v1", Kind: kinds.StatefulSet},
		replicaSets: {APIVersion: "apps/v1", Kind: kinds.ReplicaSet}, jobs: {APIVersion: "batch/v1", Kind: kinds.Job},
	}
	r := of[resource]
	r.Namespace, r.Name = s.namespace, name
	return r
}

// side is one of the two API servers during one sequence, and what was seen of it.
type side struct {
	namespace string
	host      string
	client    *http.Client
	store     *store.Store
	clock     *clocktesting.FakeClock
	ctx       context.Context //nolint:containedctx // of the sequence: its watches end with it

	mu       sync.Mutex
	log      []string
	versions map[string][]object // of each object, as they were first seen
	revs     []int64             // all resourceVersions of objects, in order
	uids     map[string]string
	watches  map[string]*watched

	owners map[string][]store.Owner
	pods   map[string][]*metav1.PartialObjectMetadata
	leases map[int][]slotlease.Lease
}

// begin is the time of both sides' clocks.
func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// newSide returns a side whose requests go through config.
func newSide(ctx context.Context, config *rest.Config, namespace string) (*side, error) {
	s := &side{
		namespace: namespace, host: config.Host, clock: clocktesting.NewFakeClock(begin()), ctx: ctx,
		versions: map[string][]object{}, uids: map[string]string{}, watches: map[string]*watched{},
		owners: map[string][]store.Owner{}, pods: map[string][]*metav1.PartialObjectMetadata{}, leases: map[int][]slotlease.Lease{},
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{s: s, next: next} })
	var err error
	if s.client, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	s.store, err = store.New(config, s.clock)
	return s, err
}

// simulated returns a side on a new simulated server.
func simulated(ctx context.Context, with http.RoundTripper) (*side, error) {
	return newSide(ctx, &rest.Config{Host: "http://simulation.invalid", Transport: with}, "sim")
}

func simulator() http.RoundTripper { return server.NewStandalone() }

// notef adds a line to what the present step saw.
func (s *side) notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// take returns what was noted since the last call.
func (s *side) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.log
	s.log = nil
	return out
}

// newest returns the object as it was seen last but back, nil if it was not.
func (s *side) newest(key string, back int) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.versions[key]
	if len(all) == 0 {
		return nil
	}
	return all[max(0, len(all)-1-back)]
}

// meta returns a field of the metadata of an object as it was seen last but back.
func (s *side) meta(key string, back int, field string) any {
	m, _ := s.newest(key, back)[metadata].(object)
	if m[field] == nil {
		return "0"
	}
	return m[field]
}

// seen remembers an object, once for each resourceVersion.
func (s *side) seen(resource string, o object) {
	m, _ := o[metadata].(object)
	name, _ := m["name"].(string)
	rev, err := strconv.ParseInt(fmt.Sprint(m["resourceVersion"]), 10, 64)
	if name == "" || err != nil {
		return
	}
	if i, there := slices.BinarySearch(s.revs, rev); !there {
		s.revs = slices.Insert(s.revs, i, rev)
	}
	uid, _ := m["uid"].(string)
	if _, known := s.uids[uid]; !known {
		s.uids[uid] = fmt.Sprintf("%s/%s#%d", resource, name, len(s.uids))
	}
	key := resource + "/" + name
	same := func(v object) bool {
		before, _ := v[metadata].(object)
		return before["resourceVersion"] == m["resourceVersion"]
	}
	if !slices.ContainsFunc(s.versions[key], same) {
		s.versions[key] = append(s.versions[key], o)
	}
}

// path of a resource, or of one object with the name, and of a subresource.
func (s *side) path(resource string, more ...string) string {
	group := "/apis/apps/v1"
	switch resource {
	case pods:
		group = "/api/v1"
	case jobs:
		group = "/apis/batch/v1"
	}
	return group + "/namespaces/" + s.namespace + "/" + strings.Join(append([]string{resource}, more...), "/")
}

// ask sends one request and waits for its answer, which the recorder notes.
func (s *side) ask(ctx context.Context, method, path string, query url.Values, content string, body any) error {
	data, ok := body.([]byte)
	if body != nil && !ok {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.host+path+"?"+query.Encode(), bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", content)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // it was read
	return err
}

// by returns the query of a write by a field manager.
func by(manager string) url.Values { return url.Values{"fieldManager": {manager}} }

// patch sends a patch of a resource's object.
func (s *side) patch(ctx context.Context, resource, name, manager, content string, body any) error {
	return s.ask(ctx, http.MethodPatch, s.path(resource, name), by(manager), content, body)
}

// fresh waits until the server's cache has all that was seen of a resource, so that what comes from the cache is no
// matter of time.
func (s *side) fresh(ctx context.Context, resource string) error {
	var last int64
	s.mu.Lock()
	for key, all := range s.versions {
		if strings.HasPrefix(key, resource+"/") {
			for _, o := range all {
				m, _ := o[metadata].(object)
				rev, err := strconv.ParseInt(fmt.Sprint(m["resourceVersion"]), 10, 64)
				if err == nil {
					last = max(last, rev)
				}
			}
		}
	}
	s.mu.Unlock()
	if last == 0 {
		return nil
	}
	query := url.Values{"resourceVersion": {strconv.FormatInt(last, 10)}, "resourceVersionMatch": {"NotOlderThan"}}
	return s.ask(context.WithValue(ctx, quietly, true), http.MethodGet, s.path(resource), query, "", nil)
}
