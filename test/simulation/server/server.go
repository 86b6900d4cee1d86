package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// Namespace is the one that all objects are in.
const Namespace = "sim"

// Version is one moment of a stored object.
type Version struct {
	Kind object.Kind
	Name string
	RV   int64
	at   time.Duration
	// Object is nil when it is deleted.
	Object object.Object
	Before *Version
	// whole and metadata are the JSON of the object and of its metadata alone, made when they are asked for, as are labels and annotations.
	whole, metadata     []byte
	labels, annotations map[string]string
}

// Labels are those of the object. Nobody may change the map.
func (v *Version) Labels() map[string]string {
	if v.labels == nil {
		v.labels = object.Labels(v.Object)
	}
	return v.labels
}

// Annotations are those of the object. Nobody may change the map.
func (v *Version) Annotations() map[string]string {
	if v.annotations == nil {
		v.annotations = object.Annotations(v.Object)
	}
	return v.annotations
}

// Count is how many pods an owner is to have.
func (v *Version) Count() int { return object.Number(v.Object, "spec", v.Kind.Count) }

// Exists reports whether there is such an object at that moment.
func (v *Version) Exists() bool { return v != nil && v.Object != nil }

// deleted is the version that a watch shows when v went away: v as it was, at a newer resourceVersion.
func (v *Version) deleted(rv int64) *Version {
	last := object.Clone(v.Object)
	object.Need(last, object.Metadata)["resourceVersion"] = strconv.FormatInt(rv, 10)
	return &Version{Kind: v.Kind, Name: v.Name, RV: rv, Object: last}
}

func (v *Version) json(metadataOnly bool) []byte {
	if !metadataOnly {
		if v.whole == nil {
			v.whole = object.Encode(v.Object)
		}
		return v.whole
	}
	if v.metadata == nil {
		v.metadata = object.Encode(object.Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", object.Metadata: v.Object[object.Metadata]})
	}
	return v.metadata
}

// Host is where a server is. It calls the server, and the server calls it, while nothing else happens.
type Host interface {
	// Now is the time since the beginning.
	Now() time.Duration
	// After runs do at a later moment, while nothing else happens.
	After(d time.Duration, do func())
	// Alone runs do while nothing else happens. It is for a client's own goroutines.
	Alone(do func())
	// EventDelay draws what an event of a watch takes.
	EventDelay(d *dice.Dice) time.Duration
	// Step notes what happened.
	Step(what string, about ...string)
	// Changed is told of every version that is stored.
	Changed(v *Version)
}

// Settings are what servers differ in.
type Settings struct {
	// PageSize is how many objects a page of a list has at most, 0 for as many as are asked for.
	PageSize int
	// CacheLag is how far the cache is behind, on average; 0 for not at all.
	CacheLag time.Duration
	// WatchList says that the server has this feature.
	WatchList bool
}

// Server is the simulated API server with its etcd.
type Server struct {
	host Host
	Settings
	rv        int64
	oldest    int64 // a watch from before it is expired; never 0, from which a watch would begin anywhere
	current   map[string]map[string]*Version
	names     map[string][]string   // of current, in order
	log       map[string][]*Version // of each resource, in order
	uids      int
	watchers  map[string][]*Stream
	selectors map[string]k8slabels.Selector
	fields    map[string]fields.Selector
	// Refusals are what an administrator took away, by verb and resource ("patch pods").
	Refusals map[string]bool
	// Forbids, if it is not nil, says what the Role of the account does not permit whose request is carried out.
	Forbids func(r *Request) bool
	// Budget, if it is not nil, says whether a budget lets a pod be evicted.
	Budget func(pod *Version) bool
	// Judge, if it is not nil, says why an admission policy refuses what the request writes that is carried out; empty if none does.
	Judge func(w Write) string
	// Admission keeps everybody from changing owners.
	Admission bool
	// Refuses, if it is not nil, says with which sentence a policy refuses to have an object changed. It is empty if none does.
	Refuses func(v *Version) string
	// Mutates, if it is not nil, changes what a patch makes of an object before it is stored, and MutatesLease a Lease.
	Mutates, MutatesLease func(next object.Object)
}

// New returns a server without objects.
func New(in Host, as Settings) *Server {
	s := &Server{
		host: in, Settings: as, rv: 1000, oldest: 1000, current: map[string]map[string]*Version{}, names: map[string][]string{}, log: map[string][]*Version{}, watchers: map[string][]*Stream{},
		selectors: map[string]k8slabels.Selector{}, fields: map[string]fields.Selector{}, Refusals: map[string]bool{},
	}
	for _, resource := range []string{object.Pods, object.Deployments, object.ReplicaSets, object.StatefulSets, object.Jobs, object.Leases} {
		s.current[resource] = map[string]*Version{}
	}
	return s
}

// CountFrom has later writes get resourceVersions after this one. Call it before there are watches.
func (s *Server) CountFrom(rv int64) { s.rv, s.oldest = rv, rv }

// Newest is the resourceVersion of the last write.
func (s *Server) Newest() int64 { return s.rv }

// Get returns an object as it is now, nil if there is none.
func (s *Server) Get(resource, name string) *Version {
	if v := s.current[resource][name]; v.Exists() {
		return v
	}
	return nil
}

// Objects returns the objects of a resource as they are now, by name.
func (s *Server) Objects(resource string) []*Version {
	current := s.current[resource]
	out := make([]*Version, 0, len(current))
	for _, name := range s.names[resource] {
		if v := current[name]; v.Exists() {
			out = append(out, v)
		}
	}
	return out
}

// objectsAt returns the objects as they were at a resourceVersion.
func (s *Server) objectsAt(resource string, rv int64) []*Version {
	var out []*Version
	for _, name := range s.names[resource] {
		v := s.current[resource][name]
		for v != nil && v.RV > rv {
			v = v.Before
		}
		if v.Exists() {
			out = append(out, v)
		}
	}
	return out
}

// Streams returns the watches that are under way, by resource and age.
func (s *Server) Streams() []*Stream {
	var out []*Stream
	for _, resource := range slices.Sorted(maps.Keys(s.watchers)) {
		out = append(out, s.watchers[resource]...)
	}
	return out
}

// Compact has watches and pages of lists from before this moment be expired.
func (s *Server) Compact() { s.oldest = s.rv }

// rvAgo is the newest resourceVersion of a resource that is at least this old.
func (s *Server) rvAgo(resource string, age time.Duration) int64 {
	log := s.log[resource]
	limit := s.host.Now() - age
	i, _ := slices.BinarySearchFunc(log, limit, func(v *Version, t time.Duration) int {
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
	return log[i-1].RV
}

// Write is what a request writes, as an admission policy sees it. Old is nil if the object does not exist, Next if it is deleted.
type Write struct {
	Operation         string
	Kind              object.Kind
	Subresource, Name string
	Old, Next         object.Object
	Options           object.Object
}

// Writer says who writes.
type Writer struct {
	Manager string
	// Restores says that the object comes from a backup of etcd: as far as it has them, it keeps its UID, its age and
	// its managedFields.
	Restores bool
}

// Put stores next. It returns the stored version; one that changes nothing is the one before.
func (s *Server) Put(k object.Kind, next object.Object, by Writer) *Version {
	old := s.current[k.Resource][object.Name(next)]
	meta := object.Need(next, object.Metadata)
	for field, value := range meta {
		if m, is := value.(object.Object); value == nil || is && len(m) == 0 {
			delete(meta, field) // an empty map is none
		}
	}
	if old.Exists() {
		for _, fixed := range []string{"name", "namespace", "uid", "creationTimestamp"} {
			meta[fixed] = object.At(old.Object, object.Metadata)[fixed]
		}
		meta["generation"] = s.generation(k, old.Object, next)
		if object.EqualBut(old.Object, next, "resourceVersion", "managedFields") {
			return old
		}
	} else {
		s.uids++
		for field, value := range map[string]string{"uid": newUID(s.uids), "creationTimestamp": time.Now().UTC().Format(time.RFC3339)} {
			if _, has := meta[field]; !has || !by.Restores {
				meta[field] = value
			}
		}
		meta["namespace"] = Namespace
		meta["generation"] = int64(1)
		next["kind"], next["apiVersion"] = k.Name, k.APIVersion
	}
	s.rv++
	meta["resourceVersion"] = strconv.FormatInt(s.rv, 10)
	if !by.Restores {
		sign(meta, by.Manager)
	}
	v := &Version{Kind: k, Name: object.Name(next), RV: s.rv, at: s.host.Now(), Object: next, Before: old}
	s.keep(v)
	return v
}

// newUID returns the n-th UID. As of real ones, the first eight characters tell them apart: an odd factor maps 32 bits one to one.
func newUID(n int) string {
	const spread = 0x9e3779b1
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*spread, n) //nolint:gosec // it wraps around, as it should
}

// generation follows the spec, and for a Deployment the annotations too.
func (s *Server) generation(k object.Kind, old, next object.Object) int64 {
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

// Remove deletes an object at once, a pod as with a grace period of 0.
func (s *Server) Remove(v *Version) {
	switch {
	case !v.Exists():
	case v.Kind.Resource == object.Pods:
		s.DeletePod(v.Name, 0)
	default:
		s.erase(v)
	}
}

// erase leaves nothing of an object.
func (s *Server) erase(v *Version) {
	s.rv++
	s.keep(&Version{Kind: v.Kind, Name: v.Name, RV: s.rv, at: s.host.Now(), Before: v})
}

func (s *Server) keep(v *Version) {
	if resource := v.Kind.Resource; s.current[resource][v.Name] == nil {
		names := s.names[resource]
		i, _ := slices.BinarySearch(names, v.Name)
		s.names[resource] = slices.Insert(slices.Clone(names), i, v.Name) // somebody may go through the names at this moment
	}
	s.current[v.Kind.Resource][v.Name] = v
	s.log[v.Kind.Resource] = append(s.log[v.Kind.Resource], v)
	s.host.Changed(v)
	for _, st := range s.watchers[v.Kind.Resource] {
		st.hear(v)
	}
}

// Change stores what edit makes of an object; it does nothing when there is none.
func (s *Server) Change(resource, name string, by Writer, edit func(object.Object)) {
	old := s.Get(resource, name)
	if old == nil {
		return
	}
	next := object.Clone(old.Object)
	edit(next)
	s.Put(old.Kind, next, by)
}

// DeletePod is DELETE with a grace period. A pod without a node, or whose phase says that it has ended, has no grace;
// one that is being deleted already can only be given less. The real server, too, writes that a pod is being deleted before it
// erases it.
func (s *Server) DeletePod(name string, grace time.Duration) {
	v := s.Get(object.Pods, name)
	if v == nil {
		return
	}
	switch {
	case object.Terminating(v.Object):
		if grace >= time.Duration(object.Number(v.Object, object.Metadata, "deletionGracePeriodSeconds"))*time.Second {
			return
		}
	case object.Text(v.Object, "spec", "nodeName") == "" || object.Ended(v.Object):
		grace = 0
	}
	s.Change(object.Pods, name, Writer{Manager: "kube-controller-manager"}, func(o object.Object) {
		meta := object.Need(o, object.Metadata)
		meta["deletionTimestamp"] = time.Now().UTC().Add(grace).Format(time.RFC3339)
		meta["deletionGracePeriodSeconds"] = int64(grace / time.Second)
	})
	if grace == 0 {
		s.erase(s.Get(object.Pods, name))
	}
}
