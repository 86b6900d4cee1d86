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

// Ref names an owner. It is an object of one of the four kinds that can carry an assignment.
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// Resource is empty for the four kinds. For another one, which the controller was told of, it is the name in paths, such as "rollouts". Such an
	// owner is counted by its subresource scale.
	Resource string
}

// String returns "Deployment/worker", or "Rollout.argoproj.io/worker", as identity.Owner does.
func (r Ref) String() string { return r.Owner().String() }

// Is reports whether r is of this one of the four kinds.
func (r Ref) Is(kind string) bool { return r.Kind == kind && r.APIVersion == kinds[kind].apiVersion() }

// Names reports whether an owner reference has the group, kind and name of r.
func (r Ref) Names(o *metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind() == schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind() && o.Name == r.Name
}

// IsReplicaSet reports whether a controller is a ReplicaSet of Kubernetes. It is false for nil.
func IsReplicaSet(controller *metav1.OwnerReference) bool {
	return controller != nil && controller.APIVersion == "apps/v1" && controller.Kind == ReplicaSet
}

// Owner returns r in the form in which programs see it.
func (r Ref) Owner() identity.Owner {
	return identity.Owner{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

// GVR returns the resource of r's kind.
func (r Ref) GVR() schema.GroupVersionResource {
	if r.Resource != "" {
		return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupVersion().WithResource(r.Resource)
	}
	k := kinds[r.Kind]
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.resource}
}

// The kinds that can be owners.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	ReplicaSet  = "ReplicaSet"
	Job         = "Job"

	// AnyKind lists them for a sentence.
	AnyKind = Deployment + ", " + StatefulSet + ", " + ReplicaSet + " or " + Job
)

// kind holds everything in which the kinds differ, but for how a Deployment's rolling update goes (rollout.go).
type kind struct {
	group, version, resource string
	// short are the short names that kubectl accepts.
	short []string
	// count returns the desired number of pods, nil for Kubernetes' default.
	count func(*spec) *int
	// ordinal returns a pod's index as a decimal. It is nil if pods of the kind have none.
	ordinal func(pod metav1.Object) string
	// condemns says that Kubernetes removes the pods whose index is none of those that the owner has.
	condemns bool
	// rolls says that the kind replaces its pods by revisions, that each revision is a ReplicaSet, and that its status
	// counts their progress. Then pods of a new revision may ask pods of an old one for their slots.
	rolls bool
	// versioned says that the generation grows with every change of the spec or the annotations. Then a write compares
	// the generation, so that a status update does not make it fail.
	versioned bool
}

// The labels that give a pod an ordinal. Kubernetes also sets the second one as an annotation.
const (
	PodIndexLabel        = "apps.kubernetes.io/pod-index"
	CompletionIndexLabel = "batch.kubernetes.io/job-completion-index"
)

var kinds = map[string]kind{ //nolint:gochecknoglobals // a constant that Go cannot express
	Deployment:  {group: "apps", version: "v1", resource: "deployments", short: []string{"deploy"}, count: replicas, rolls: true, versioned: true},
	StatefulSet: {group: "apps", version: "v1", resource: "statefulsets", short: []string{"sts"}, count: replicas, ordinal: podIndex, condemns: true},
	ReplicaSet:  {group: "apps", version: "v1", resource: "replicasets", short: []string{"rs"}, count: replicas},
	Job:         {group: "batch", version: "v1", resource: "jobs", count: parallelism, ordinal: completionIndex},
}

func replicas(s *spec) *int    { return s.Replicas }
func parallelism(s *spec) *int { return s.Parallelism }

// podIndex falls back to the number at the end of the pod's name, because the label only exists since Kubernetes 1.28.
func podIndex(pod metav1.Object) string {
	return cmp.Or(pod.GetLabels()[PodIndexLabel], pod.GetName()[strings.LastIndexByte(pod.GetName(), '-')+1:])
}

func completionIndex(pod metav1.Object) string {
	return cmp.Or(pod.GetLabels()[CompletionIndexLabel], pod.GetAnnotations()[CompletionIndexLabel])
}

// kind returns in what r's kind differs from others.
func (r Ref) kind() kind {
	if !r.Is(r.Kind) {
		return kind{}
	}
	return kinds[r.Kind]
}

// Rolls reports whether the kind replaces its pods by revisions, so that their slots may be handed over.
func (r Ref) Rolls() bool { return r.kind().rolls }

// OverSets reports whether ReplicaSets may stand between the owner and its pods: of a further kind that is not known.
func (r Ref) OverSets() bool { return r.Rolls() || r.Resource != "" }

// Ordinal returns the index of one of the owner's pods, counted from 0. ok is false if the pod has none.
func (o Owner) Ordinal(pod metav1.Object) (n int, ok bool) {
	index := o.kind().ordinal
	if index == nil {
		return 0, false
	}
	n, err := strconv.Atoi(index(pod))
	n -= o.OrdinalStart
	return n, err == nil && n >= 0
}

// Condemned reports whether Kubernetes is to remove one of the owner's pods, because the owner was scaled down or its ordinals begin elsewhere.
func (o Owner) Condemned(pod metav1.Object) bool {
	if !o.kind().condemns {
		return false
	}
	n, err := strconv.Atoi(podIndex(pod))
	return err == nil && (n < o.OrdinalStart || n >= o.OrdinalStart+o.Count)
}

// KeptByCondemned says why a pod waits whose slot a condemned pod keeps, and what to do.
func (o Owner) KeptByCondemned() string {
	return fmt.Sprintf("%s has the ordinals %d to %d now, and pods with other ordinals keep slots that they cannot hand over; with the policy OrderedReady "+
		"Kubernetes removes these only when all others are Ready: delete them, and they do not come back", o.Ref, o.OrdinalStart, o.OrdinalStart+o.Count-1)
}

func (k kind) apiVersion() string { return k.group + "/" + k.version }

// NewRef returns the Ref of an object. ok is false if objects of this apiVersion and kind cannot be owners. further are kinds that can also be owners.
// Their versions do not matter.
func NewRef(apiVersion, kindName, namespace, name string, further ...Further) (ref Ref, ok bool) {
	if k, ok := kinds[kindName]; ok && apiVersion == k.apiVersion() {
		return Ref{APIVersion: apiVersion, Kind: kindName, Namespace: namespace, Name: name}, true
	}
	for _, f := range further {
		if f.GroupKind() == schema.FromAPIVersionAndKind(apiVersion, kindName).GroupKind() {
			return f.Ref(namespace, name), true
		}
	}
	return Ref{}, false
}

// ParseRef reads KIND/NAME in the forms that kubectl accepts: deployment/worker, deploy/worker, deployments.apps/worker.
func ParseRef(text, namespace string) (Ref, error) {
	kindName, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("%s is not KIND/NAME: write for example deployment/worker", text)
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
	return Ref{}, fmt.Errorf("%s is no kind that gives ids: use a %s", kindName, AnyKind)
}
