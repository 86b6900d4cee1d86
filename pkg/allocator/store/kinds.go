package store

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// Ref names an owner.
type Ref = kinds.Ref

// Further is a kind of owner that is not built into Kubernetes.
type Further = kinds.Kind

// The kinds that can be owners.
const (
	Deployment  = kinds.Deployment
	StatefulSet = kinds.StatefulSet
	ReplicaSet  = kinds.ReplicaSet
	Job         = kinds.Job
	AnyKind     = kinds.Any
)

// The labels that give a pod an ordinal. Kubernetes also sets the second one as an annotation.
const (
	PodIndexLabel        = "apps.kubernetes.io/pod-index"
	CompletionIndexLabel = "batch.kubernetes.io/job-completion-index"
)

// IsReplicaSet reports whether a controller is a ReplicaSet of Kubernetes. It is false for nil.
func IsReplicaSet(controller *metav1.OwnerReference) bool { return kinds.IsReplicaSet(controller) }

// NewRef returns the Ref of an object. ok is false if objects of this apiVersion and kind cannot be owners. further are additional owner kinds.
func NewRef(apiVersion, kind, namespace, name string, further ...Further) (ref Ref, ok bool) {
	return kinds.BuiltIn(further...).Ref(apiVersion, kind, namespace, name)
}

// ParseRef reads KIND/NAME in the forms that kubectl accepts: deployment/worker, deploy/worker, deployments.apps/worker.
func ParseRef(text, namespace string) (Ref, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("%s is not KIND/NAME: write for example deployment/worker", text)
	}
	ref, ok := kinds.BuiltIn().Parse(text, namespace)
	if !ok {
		return Ref{}, fmt.Errorf("%s is no kind that gives ids: use a %s", kind, AnyKind)
	}
	return ref, nil
}

// desired returns the number of pods in the spec of an owner, nil for Kubernetes' default.
func desired(ref Ref, s *spec) *int {
	if ref.Of().Count == kinds.ByParallelism {
		return s.Parallelism
	}
	return s.Replicas
}

// index returns a pod's index as a decimal. ok is false if pods of the kind have none. Without the label, which exists only since Kubernetes 1.28, the end
// of the name is used.
func index(ref Ref, pod metav1.Object) (n int, ok bool) {
	text := ""
	switch ref.Of().Ordinals {
	case kinds.ByPodIndex:
		text = cmp.Or(pod.GetLabels()[PodIndexLabel], pod.GetName()[strings.LastIndexByte(pod.GetName(), '-')+1:])
	case kinds.ByCompletionIndex:
		text = cmp.Or(pod.GetLabels()[CompletionIndexLabel], pod.GetAnnotations()[CompletionIndexLabel])
	case kinds.NoOrdinals:
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Ordinal returns the index of one of the owner's pods, counted from 0. ok is false if the pod has none.
func (o Owner) Ordinal(pod metav1.Object) (n int, ok bool) {
	n, ok = index(o.Ref, pod)
	n -= o.OrdinalStart
	return n, ok && n >= 0
}

// Condemned reports whether Kubernetes will remove this pod of the owner, because the owner was scaled down or its ordinals begin elsewhere.
func (o Owner) Condemned(pod metav1.Object) bool {
	n, ok := index(o.Ref, pod)
	return ok && o.Of().Condemns && (n < o.OrdinalStart || n >= o.OrdinalStart+o.Count)
}

// KeptByCondemned explains that a pod waits for a slot kept by a condemned pod, and what to do.
func (o Owner) KeptByCondemned() string {
	return fmt.Sprintf("%s has the ordinals %d to %d now, and pods with other ordinals keep slots that they cannot hand over; with the policy OrderedReady "+
		"Kubernetes removes these only when all others are Ready: delete them, and they do not come back", o.Ref, o.OrdinalStart, o.OrdinalStart+o.Count-1)
}
