package store

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Ref names an owner: an object of one of the four kinds that can carry an assignment.
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
}

// String returns "Deployment/worker".
func (r Ref) String() string { return r.Kind + "/" + r.Name }

// Owner returns r as the workload sees it.
func (r Ref) Owner() identity.Owner {
	return identity.Owner{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

// GVR returns the resource of r's kind.
func (r Ref) GVR() schema.GroupVersionResource {
	k := kinds[r.Kind]
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.resource}
}

// Kinds that can be owners.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	ReplicaSet  = "ReplicaSet"
	Job         = "Job"
)

// kind is all in which the kinds differ.
type kind struct {
	group, version, resource string
	// short are the names that kubectl takes beside the resource.
	short []string
	// count finds the desired number of pods.
	count func(*spec) *int
	// ordinal finds a pod's index, counted from the owner's first; nil where pods have none.
	ordinal func(pod metav1.Object) string
	// rolls says that the kind replaces its pods by revisions, each of them a ReplicaSet, and counts in its status how far it
	// is: pods of a new revision may ask those of an old one for their slots.
	rolls bool
	// versioned says that the kind's generation grows whenever spec or annotations change. Then it is what a write compares,
	// since status updates do not disturb it.
	versioned bool
}

// Labels and annotations that give a pod an ordinal.
const (
	PodIndexLabel        = "apps.kubernetes.io/pod-index"
	CompletionIndexLabel = "batch.kubernetes.io/job-completion-index"
)

var kinds = map[string]kind{ //nolint:gochecknoglobals // a constant that Go cannot express
	Deployment:  {group: "apps", version: "v1", resource: "deployments", short: []string{"deploy"}, count: replicas, rolls: true, versioned: true},
	StatefulSet: {group: "apps", version: "v1", resource: "statefulsets", short: []string{"sts"}, count: replicas, ordinal: podIndex},
	ReplicaSet:  {group: "apps", version: "v1", resource: "replicasets", short: []string{"rs"}, count: replicas},
	Job:         {group: "batch", version: "v1", resource: "jobs", count: parallelism, ordinal: completionIndex},
}

func replicas(s *spec) *int    { return s.Replicas }
func parallelism(s *spec) *int { return s.Parallelism }

// podIndex is the number with which the name ends, too; the label exists since Kubernetes 1.28.
func podIndex(pod metav1.Object) string {
	return cmp.Or(pod.GetLabels()[PodIndexLabel], pod.GetName()[strings.LastIndexByte(pod.GetName(), '-')+1:])
}

func completionIndex(pod metav1.Object) string {
	return cmp.Or(pod.GetLabels()[CompletionIndexLabel], pod.GetAnnotations()[CompletionIndexLabel])
}

// Rolls reports whether the kind replaces its pods by revisions, so that their slots may be handed over.
func (r Ref) Rolls() bool { return kinds[r.Kind].rolls }

// Ordinal returns the index of one of the owner's pods, counted from 0; ok is false for a pod that has none.
func (o Owner) Ordinal(pod metav1.Object) (n int, ok bool) {
	index := kinds[o.Kind].ordinal
	if index == nil {
		return 0, false
	}
	n, err := strconv.Atoi(index(pod))
	n -= o.OrdinalStart
	return n, err == nil && n >= 0
}

func (k kind) apiVersion() string { return k.group + "/" + k.version }

// NewRef returns the Ref of an object by its apiVersion and kind; ok is false for a kind that cannot be an owner.
func NewRef(apiVersion, kindName, namespace, name string) (ref Ref, ok bool) {
	k, ok := kinds[kindName]
	if !ok || apiVersion != k.apiVersion() {
		return Ref{}, false
	}
	return Ref{APIVersion: apiVersion, Kind: kindName, Namespace: namespace, Name: name}, true
}

// ParseRef reads KIND/NAME as kubectl takes it: deployment/worker, deploy/worker, deployments.apps/worker.
func ParseRef(text, namespace string) (Ref, error) {
	kindName, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("idalloc: %q is not KIND/NAME: write for example deployment/worker", text)
	}
	word, group, _ := strings.Cut(strings.ToLower(kindName), ".")
	for full, k := range kinds {
		names := append([]string{strings.ToLower(full), k.resource}, k.short...)
		for _, n := range names {
			if n == word && (group == "" || group == k.group || group == k.version+"."+k.group) {
				return Ref{APIVersion: k.apiVersion(), Kind: full, Namespace: namespace, Name: name}, nil
			}
		}
	}
	return Ref{}, fmt.Errorf("idalloc: %q cannot carry an assignment: use a deployment, statefulset, replicaset or job", kindName)
}
