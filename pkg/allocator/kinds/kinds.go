// Package kinds defines which kinds of objects can be owners, and how they differ. It is the only list of them: ClusterRoles, policies, injection and
// docs/architecture.md are tested against it.
//
// A kind is a group and a kind together. Its version does not matter.
package kinds

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that every cluster has.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	ReplicaSet  = "ReplicaSet"
	Job         = "Job"

	// Any lists them for a sentence.
	Any = Deployment + ", " + StatefulSet + ", " + ReplicaSet + " or " + Job
)

// Count is the place of the number of pods.
type Count int

// The places.
const (
	ByReplicas    Count = iota // spec.replicas
	ByParallelism              // spec.parallelism
	ByScale                    // the subresource scale
)

// Ordinals is the place of a pod's index.
type Ordinals int

// The places.
const (
	NoOrdinals        Ordinals = iota
	ByPodIndex                 // a StatefulSet's
	ByCompletionIndex          // an Indexed Job's
)

// The labels that give a pod an ordinal. Kubernetes also sets the second one as an annotation.
const (
	PodIndexLabel        = "apps.kubernetes.io/pod-index"
	CompletionIndexLabel = "batch.kubernetes.io/job-completion-index"
)

// RevisionLabel is the label of a StatefulSet's pod with the hash of the template from which it was made.
const RevisionLabel = "controller-revision-hash"

// Kind is a kind of owner, with everything that distinguishes it from others.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the kind's name in paths, such as "rollouts".
	Resource string
	// Words are kubectl's other names of the kind, in lower case.
	Words []string
	// Count and Ordinals are the places of counts and indices.
	Count    Count
	Ordinals Ordinals
	// Condemns: Kubernetes removes the pods whose index the owner no longer has.
	Condemns bool
	// Rolls: the kind replaces its pods by revisions, each revision is a ReplicaSet, and the status counts their progress. Then pods of a new revision may
	// ask pods of an old one for their slots.
	Rolls bool
	// OverSets: ReplicaSets may stand between the owner and its pods.
	OverSets bool
	// Versioned: the generation grows with every change of the spec or the annotations. Then a write compares the generation, so that a status update does
	// not make it fail.
	Versioned bool
}

// Ref names an owner of the kind.
func (k Kind) Ref(namespace, name string) Ref {
	r := Ref{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Namespace: namespace, Name: name}
	if k.Count == ByScale {
		r.Resource = k.Resource
	}
	return r
}

// called reports whether a lower-case word of kubectl's, with or without a group, names the kind.
func (k Kind) called(word, group string) bool {
	return word != "" && (word == k.Resource || strings.EqualFold(word, k.Kind) || slices.Contains(k.Words, word)) &&
		(group == "" || group == k.Group || group == k.Version+"."+k.Group)
}

// Kinds are the known kinds. If two have the same name, the first one wins.
type Kinds []Kind

var builtIn = Kinds{ //nolint:gochecknoglobals // a constant that Go cannot express
	{GroupVersionKind: apps(Deployment), Resource: "deployments", Words: []string{"deploy"}, Rolls: true, OverSets: true, Versioned: true},
	{GroupVersionKind: apps(StatefulSet), Resource: "statefulsets", Words: []string{"sts"}, Ordinals: ByPodIndex, Condemns: true},
	{GroupVersionKind: apps(ReplicaSet), Resource: "replicasets", Words: []string{"rs"}},
	{
		GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: Job}, Resource: "jobs",
		Count: ByParallelism, Ordinals: ByCompletionIndex,
	},
}

func apps(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

// BuiltIn returns the kinds that every cluster has, and further ones.
func BuiltIn(further ...Kind) Kinds { return append(slices.Clip(builtIn), further...) }

// Scaled returns a further kind, of which only the scale subresource is known.
func Scaled(gvk schema.GroupVersionKind, resource string, words ...string) Kind {
	return Kind{GroupVersionKind: gvk, Resource: resource, Words: words, Count: ByScale, OverSets: true}
}

// Of returns the kind with this group and name.
func (k Kinds) Of(of schema.GroupKind) (Kind, bool) {
	i := slices.IndexFunc(k, func(k Kind) bool { return k.GroupKind() == of })
	if i < 0 {
		return Kind{}, false
	}
	return k[i], true
}

// longestName is the longest name that Kubernetes gives to an object. In an owner reference anyone may write a longer one, of a megabyte.
const longestName = 253

// Ref returns the Ref of an object. known is false if objects of its kind cannot be owners, or if no object can have that name.
func (k Kinds) Ref(apiVersion, kind, namespace, name string) (ref Ref, known bool) {
	is, known := k.Of(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind())
	if !known || len(name) > longestName {
		return Ref{}, false
	}
	return is.Ref(namespace, name), true
}

// Above returns the owner of the pods of a ReplicaSet with this controller. A ReplicaSet without a controller is the owner itself. If an unknown kind
// controls it, there is no owner: that kind makes a ReplicaSet for each revision, and each would count from 0.
func (k Kinds) Above(set Ref, controller *metav1.OwnerReference) (top Ref, known bool) {
	if controller == nil {
		return set, true
	}
	top, known = k.Ref(controller.APIVersion, controller.Kind, set.Namespace, controller.Name)
	if !known || !top.OverSets() {
		return Ref{}, false
	}
	return top, true
}

// Parse reads KIND/NAME in the forms that kubectl accepts: deployment/worker, deploy/worker, deployments.apps/worker.
func (k Kinds) Parse(text, namespace string) (ref Ref, known bool) {
	kind, name, _ := strings.Cut(text, "/")
	word, group, _ := strings.Cut(strings.ToLower(kind), ".")
	i := slices.IndexFunc(k, func(k Kind) bool { return k.called(word, group) })
	if i < 0 || name == "" || len(name) > longestName || strings.Contains(name, "/") {
		return Ref{}, false
	}
	return k[i].Ref(namespace, name), true
}
