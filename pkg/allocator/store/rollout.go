package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// revisionAnnotation is the Deployment controller's: it stands on the Deployment with the current
// revision and on each ReplicaSet with its own.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Rollout is how a Deployment replaces its pods.
type Rollout struct {
	// Revision is the current one, empty before the controller looked.
	Revision string
	// Recreate says that all old pods end before new ones start.
	Recreate bool
	// MaxUnavailable and MaxSurge are numbers of pods, percentages resolved as Kubernetes does.
	MaxUnavailable, MaxSurge int
	// Progress is what the Deployment's status counts; it changes when a pod becomes available.
	Progress [3]int64
}

// Blocks reports whether a rolling update starts new pods and ends no old one before a new one is
// Ready, so that it needs hand-overs where only pods with an id are Ready.
func (r Rollout) Blocks() bool { return !r.Recreate && r.MaxUnavailable == 0 }

func decodeRollout(u *unstructured.Unstructured, count int) (Rollout, error) {
	r := Rollout{Revision: u.GetAnnotations()[revisionAnnotation]}
	for i, field := range []string{"updatedReplicas", "readyReplicas", "availableReplicas"} {
		r.Progress[i], _, _ = unstructured.NestedInt64(u.Object, "status", field)
	}
	kind, _, err := unstructured.NestedString(u.Object, "spec", "strategy", "type")
	if err != nil {
		return r, err
	}
	if kind == "Recreate" {
		r.Recreate = true
		return r, nil
	}
	if r.MaxSurge, err = resolve(u, "maxSurge", count, true); err != nil {
		return r, err
	}
	if r.MaxUnavailable, err = resolve(u, "maxUnavailable", count, false); err != nil {
		return r, err
	}
	if r.MaxSurge == 0 && r.MaxUnavailable == 0 {
		r.MaxUnavailable = 1 // as the Deployment controller does, so that it can roll at all
	}
	return r, nil
}

func resolve(u *unstructured.Unstructured, field string, count int, up bool) (int, error) {
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "strategy", "rollingUpdate", field)
	if err != nil {
		return 0, err
	}
	number := intstr.FromString("25%") // Kubernetes' default for both
	switch v := value.(type) {
	case int64:
		number = intstr.FromInt32(int32(v)) //nolint:gosec // the API server keeps it in an int32
	case string:
		number = intstr.FromString(v)
	default:
		if found {
			return 0, fmt.Errorf("%s is a %T", field, value)
		}
	}
	return intstr.GetScaledValueFromIntOrPercent(&number, count, up)
}

// Revision is one revision of a Deployment.
type Revision struct {
	// Number is the revision's own, empty before the controller looked.
	Number string
	// Available is how many of its pods are available.
	Available int
}

// Current reports whether this is the owner's current revision.
func (r Revision) Current(o Owner) bool { return r.Number != "" && r.Number == o.Rollout.Revision }

// RevisionOf reads the revision that a pod of the Deployment belongs to, from its ReplicaSet. A pod
// without one has the zero Revision, which is never current. Errors: as of Get.
func (s *Store) RevisionOf(ctx context.Context, pod *metav1.PartialObjectMetadata) (Revision, error) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || controller.Kind != ReplicaSet {
		return Revision{}, nil
	}
	ref, ok := NewRef(controller.APIVersion, controller.Kind, pod.Namespace, controller.Name)
	if !ok {
		return Revision{}, nil
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	u, err := s.Dynamic.Resource(ref.GVR()).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return Revision{}, target{ref.GVR(), ref.Namespace, ref.Name}.wrap("get", err)
	}
	available, _, _ := unstructured.NestedInt64(u.Object, "status", "availableReplicas")
	return Revision{Number: u.GetAnnotations()[revisionAnnotation], Available: int(available)}, nil
}
