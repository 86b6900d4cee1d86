package kinds

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Ref names an owner.
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// Resource is empty for the kinds that every cluster has. For another one, it is the name in paths, such as "rollouts".
	Resource string
}

// String returns "Deployment/worker", or "Rollout.argoproj.io/worker", as identity.Owner does.
func (r Ref) String() string { return r.Owner().String() }

// NewRef returns the Ref of an object. known is false if objects of this apiVersion and kind cannot be owners. further are additional owner kinds.
func NewRef(apiVersion, kind, namespace, name string, further ...Kind) (ref Ref, known bool) {
	return BuiltIn(further...).Ref(apiVersion, kind, namespace, name)
}

// ParseRef reads KIND/NAME in the forms that kubectl accepts: deployment/worker, deploy/worker, deployments.apps/worker.
func ParseRef(text, namespace string) (Ref, error) {
	kind, name, whole := strings.Cut(text, "/")
	if !whole || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("%s is not KIND/NAME: write for example deployment/worker", text)
	}
	ref, known := BuiltIn().Parse(text, namespace)
	if !known {
		return Ref{}, fmt.Errorf("%s is no kind that gives ids: use a %s", kind, Any)
	}
	return ref, nil
}

// groupKind is the group and kind of r.
func (r Ref) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// Of returns r's kind. An unknown kind has the zero Kind.
func (r Ref) Of() Kind {
	if r.Resource != "" {
		return Scaled(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), r.Resource)
	}
	k, _ := builtIn.Of(r.groupKind())
	return k
}

// Is reports whether r is of this kind, which every cluster has.
func (r Ref) Is(kind string) bool { return r.Kind == kind && r.Resource == "" && r.Of().Kind == kind }

// Names reports whether an owner reference has the group, kind and name of r.
func (r Ref) Names(o *metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind() == r.groupKind() && o.Name == r.Name
}

// Owner returns r in the form for programs.
func (r Ref) Owner() identity.Owner {
	return identity.Owner{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

// GVR returns the resource of r's kind.
func (r Ref) GVR() schema.GroupVersionResource {
	k := r.Of()
	return k.GroupVersion().WithResource(cmp.Or(r.Resource, k.Resource))
}

// Rolls reports whether the kind replaces its pods by revisions, so that their slots may be handed over.
func (r Ref) Rolls() bool { return r.Of().Rolls }

// OverSets reports whether ReplicaSets may stand between the owner and its pods, which holds for a further kind that is not known.
func (r Ref) OverSets() bool { return r.Of().OverSets }

// IsReplicaSet reports whether a controller is a ReplicaSet of Kubernetes. It is false for nil.
func IsReplicaSet(controller *metav1.OwnerReference) bool {
	return controller != nil && schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == schema.GroupKind{Group: "apps", Kind: ReplicaSet}
}

// Index returns the index of one of the owner's pods as Kubernetes gives it. ok is false if pods of the kind have none. Without the label, which exists only
// since Kubernetes 1.28, the end of the name is used.
func (r Ref) Index(pod metav1.Object) (n int, ok bool) {
	text := ""
	switch r.Of().Ordinals {
	case ByPodIndex:
		text = cmp.Or(pod.GetLabels()[PodIndexLabel], pod.GetName()[strings.LastIndexByte(pod.GetName(), '-')+1:])
	case ByCompletionIndex:
		text = cmp.Or(pod.GetLabels()[CompletionIndexLabel], pod.GetAnnotations()[CompletionIndexLabel])
	case NoOrdinals:
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
