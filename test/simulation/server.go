package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// version is one moment of a stored object.
type version struct {
	kind object.Kind
	name string
	rv   int64
	at   time.Duration
	// object is nil when it is deleted.
	object object.Object
	before *version
	// managers are who owns which annotations.
	managers managers
	// whole and metadata are the JSON of the object and of its metadata alone, made when they are asked for.
	whole, metadata []byte
}

func (v *version) exists() bool { return v != nil && v.object != nil }

// deleted is the version that a watch shows when v went away: v as it was, at a newer resourceVersion.
func (v *version) deleted(rv int64) *version {
	last := object.Clone(v.object)
	object.Need(last, object.Metadata)["resourceVersion"] = strconv.FormatInt(rv, 10)
	return &version{kind: v.kind, name: v.name, rv: rv, object: last}
}

func (v *version) json(metadataOnly bool) []byte {
	if !metadataOnly {
		if v.whole == nil {
			v.whole = object.Encode(v.object)
		}
		return v.whole
	}
	if v.metadata == nil {
		v.metadata = object.Encode(object.Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", object.Metadata: v.object[object.Metadata]})
	}
	return v.metadata
}

// server is the simulated API server with its etcd.
type server struct {
	w         *world
	rv        int64
	oldest    int64 // a watch from before it is expired
	current   map[string]map[string]*version
	log       map[string][]*version // of each resource, in order
	uids      int
	watchers  map[string][]*stream
	selectors map[string]k8slabels.Selector
	fields    map[string]fields.Selector
	// refusals are what an administrator took away, by verb and resource ("patch pods").
	refusals map[string]bool
	// quota keeps controllers from making pods, admission keeps everybody from changing owners.
	quota, admission bool
	down             bool
	requests         map[string]int // by what came of them
	// prompt sends events at once: outside of a bubble timers may overtake one another.
	prompt bool
}

func newServer(w *world) *server {
	s := &server{
		w: w, rv: 1000, current: map[string]map[string]*version{}, log: map[string][]*version{}, watchers: map[string][]*stream{},
		selectors: map[string]k8slabels.Selector{}, fields: map[string]fields.Selector{}, refusals: map[string]bool{}, requests: map[string]int{},
	}
	for _, resource := range []string{object.Pods, object.Deployments, object.ReplicaSets, object.StatefulSets, object.Jobs} {
		s.current[resource] = map[string]*version{}
	}
	return s
}

func (s *server) get(resource, name string) *version {
	if v := s.current[resource][name]; v.exists() {
		return v
	}
	return nil
}

// objects returns the objects of a resource as they are now, by name.
func (s *server) objects(resource string) []*version {
	out := make([]*version, 0, len(s.current[resource]))
	for _, name := range slices.Sorted(maps.Keys(s.current[resource])) {
		if v := s.current[resource][name]; v.exists() {
			out = append(out, v)
		}
	}
	return out
}

// objectsAt returns the objects as they were at a resourceVersion.
func (s *server) objectsAt(resource string, rv int64) []*version {
	var out []*version
	for _, name := range slices.Sorted(maps.Keys(s.current[resource])) {
		v := s.current[resource][name]
		for v != nil && v.rv > rv {
			v = v.before
		}
		if v.exists() {
			out = append(out, v)
		}
	}
	return out
}

// rvAgo is the newest resourceVersion of a resource that is at least this old.
func (s *server) rvAgo(resource string, age time.Duration) int64 {
	log := s.log[resource]
	limit := s.w.now() - age
	i, _ := slices.BinarySearchFunc(log, limit, func(v *version, t time.Duration) int {
		if v.at <= t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return s.oldest
	}
	if i == len(log) {
		return s.rv
	}
	return log[i-1].rv
}

// writer says who writes, and how managedFields are to note it.
type writer struct {
	manager string
	// apply is a server-side apply: it starts tracking where managedFields were cleared.
	apply bool
	// status is a write of the status subresource.
	status bool
	// fields, if it is not nil, are the managedFields that the client sends.
	fields *managers
}

// put stores next. It returns the stored version; one that changes nothing is the one before.
func (s *server) put(k object.Kind, next object.Object, by writer) *version {
	old := s.current[k.Resource][object.Name(next)]
	meta := object.Need(next, object.Metadata)
	for field, value := range meta {
		if m, is := value.(object.Object); value == nil || is && len(m) == 0 {
			delete(meta, field) // an empty map is none
		}
	}
	var owners managers
	if old.exists() {
		for _, fixed := range []string{"name", "namespace", "uid", "creationTimestamp"} {
			meta[fixed] = object.At(old.object, object.Metadata)[fixed]
		}
		meta["generation"] = s.generation(k, old.object, next)
		owners = old.managers.updated(old.object, next, by, s.w.wall().Unix())
		if object.EqualBut(old.object, next, "resourceVersion", "managedFields") && owners.equal(old.managers) {
			return old
		}
	} else {
		s.uids++
		meta["uid"] = newUID(s.uids)
		meta["namespace"] = namespace
		meta["creationTimestamp"] = s.w.wall().Format(time.RFC3339)
		meta["generation"] = int64(1)
		next["kind"], next["apiVersion"] = k.Name, k.APIVersion
		owners = managers{}.updated(object.Object{}, next, by, s.w.wall().Unix())
	}
	s.rv++
	meta["resourceVersion"] = strconv.FormatInt(s.rv, 10)
	if k.Resource != object.Pods { // nobody looks at a pod's
		owners.write(meta)
	}
	v := &version{kind: k, name: object.Name(next), rv: s.rv, at: s.w.now(), object: next, before: old, managers: owners}
	s.keep(v)
	return v
}

// newUID returns the n-th UID. As of real ones, the first eight characters tell them apart: an odd factor maps 32 bits one to one.
func newUID(n int) string {
	const spread = 0x9e3779b1
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*spread, n) //nolint:gosec // it wraps around, as it should
}

// generation follows the spec, and for a Deployment the annotations too.
func (s *server) generation(k object.Kind, old, next object.Object) int64 {
	generation := int64(object.Number(old, object.Metadata, "generation"))
	same := object.EqualBut(object.Object{"spec": old["spec"]}, object.Object{"spec": next["spec"]})
	if k.AnnotationsCount {
		same = same && object.EqualBut(object.At(old, object.Metadata, "annotations"), object.At(next, object.Metadata, "annotations"))
	}
	if same {
		return generation
	}
	return generation + 1
}

// remove deletes an object at once, a pod as with a grace period of 0.
func (s *server) remove(v *version) {
	switch {
	case !v.exists():
	case v.kind.Resource == object.Pods:
		s.deletePod(v.name, 0)
	default:
		s.erase(v)
	}
}

// erase leaves nothing of an object.
func (s *server) erase(v *version) {
	s.rv++
	s.keep(&version{kind: v.kind, name: v.name, rv: s.rv, at: s.w.now(), before: v})
}

func (s *server) keep(v *version) {
	s.current[v.kind.Resource][v.name] = v
	s.log[v.kind.Resource] = append(s.log[v.kind.Resource], v)
	for _, st := range s.watchers[v.kind.Resource] {
		st.hear(v)
	}
	s.w.changed(v)
}

// change stores what edit makes of an object; it does nothing when there is none.
func (s *server) change(resource, name string, by writer, edit func(object.Object)) {
	old := s.get(resource, name)
	if old == nil {
		return
	}
	next := object.Clone(old.object)
	edit(next)
	s.put(old.kind, next, by)
}

// deletePod is DELETE with a grace period. A pod without a node, or whose phase says that it has ended, has no grace;
// one that is being deleted already can only be given less. The real server, too, writes that a pod is being deleted before it
// erases it.
func (s *server) deletePod(name string, grace time.Duration) {
	v := s.get(object.Pods, name)
	if v == nil {
		return
	}
	switch {
	case object.Terminating(v.object):
		if grace >= time.Duration(object.Number(v.object, object.Metadata, "deletionGracePeriodSeconds"))*time.Second {
			return
		}
	case object.Text(v.object, "spec", "nodeName") == "" || object.Ended(v.object):
		grace = 0
	}
	s.change(object.Pods, name, writer{manager: "kube-controller-manager"}, func(o object.Object) {
		meta := object.Need(o, object.Metadata)
		meta["deletionTimestamp"] = s.w.wall().Add(grace).Format(time.RFC3339)
		meta["deletionGracePeriodSeconds"] = int64(grace / time.Second)
	})
	if grace == 0 {
		s.erase(s.get(object.Pods, name))
	}
}

func (s *server) selector(label string) k8slabels.Selector {
	sel, ok := s.selectors[label]
	if !ok {
		var err error
		if sel, err = k8slabels.Parse(label); err != nil {
			panic(fmt.Sprintf("simulation: label selector %q: %v", label, err))
		}
		s.selectors[label] = sel
	}
	return sel
}

func (s *server) fieldSelector(field string) fields.Selector {
	sel, ok := s.fields[field]
	if !ok {
		var err error
		if sel, err = fields.ParseSelector(field); err != nil {
			panic(fmt.Sprintf("simulation: field selector %q: %v", field, err))
		}
		s.fields[field] = sel
	}
	return sel
}

// filter is what a list or a watch asks for.
type filter struct {
	label k8slabels.Selector
	field fields.Selector
}

func (s *server) filter(label, field string) filter {
	return filter{label: s.selector(label), field: s.fieldSelector(field)}
}

func (f filter) matches(v *version) bool {
	if !v.exists() {
		return false
	}
	set := fields.Set{"metadata.name": v.name, "status.phase": object.Text(v.object, "status", "phase")}
	return f.field.Matches(set) && f.label.Matches(k8slabels.Set(object.Labels(v.object)))
}
