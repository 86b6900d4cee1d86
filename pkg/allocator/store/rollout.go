package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// BlocksBelow is the number of replicas below which Blocks is true because MaxUnavailable, a percentage, is
	// rounded down to 0; zero where no such number is.
	BlocksBelow int
	// Progress is what the Deployment's status counts. It changes when a pod becomes available, or, where another one
	// ceased to be available before the status was written, when that one is removed.
	Progress Progress
}

// Progress counts a Deployment's pods, those of the current revision, the Ready and the available ones.
type Progress struct{ Replicas, Updated, Ready, Available int }

// Blocks reports whether a rolling update starts new pods and ends no old one before a new one is
// Ready, so that it needs hand-overs where only pods with an id are Ready.
func (r Rollout) Blocks() bool { return !r.Recreate && r.MaxUnavailable == 0 }

func decodeRollout(o *Object, count int) (r Rollout, err error) {
	r.Revision = o.Annotations[revisionAnnotation]
	r.Progress = Progress{o.Status.Replicas, o.Status.UpdatedReplicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas}
	if o.Spec.Strategy.Type == "Recreate" {
		r.Recreate = true
		return r, nil
	}
	rolling := o.Spec.Strategy.RollingUpdate
	if r.MaxSurge, err = resolve(rolling.MaxSurge, count, true); err != nil {
		return r, fmt.Errorf("maxSurge: %w", err)
	}
	if r.MaxUnavailable, err = resolve(rolling.MaxUnavailable, count, false); err != nil {
		return r, fmt.Errorf("maxUnavailable: %w", err)
	}
	if r.MaxSurge == 0 && r.MaxUnavailable == 0 {
		r.MaxUnavailable = 1 // as the Deployment controller does, so that it can roll at all
	}
	r.BlocksBelow, err = blocksBelow(rolling.MaxSurge, rolling.MaxUnavailable)
	return r, err
}

func blocksBelow(maxSurge, maxUnavailable *intstr.IntOrString) (int, error) {
	if surge, err := resolve(maxSurge, 1, true); err != nil || surge == 0 {
		return 0, err // then 0 becomes 1
	}
	if maxUnavailable != nil && maxUnavailable.Type == intstr.Int {
		return 0, nil
	}
	percent, err := resolve(maxUnavailable, 100, false)
	if err != nil || percent <= 0 || percent >= 100 {
		return 0, err
	}
	return (100 + percent - 1) / percent, nil
}

func resolve(value *intstr.IntOrString, count int, up bool) (int, error) {
	number := intstr.FromString("25%") // Kubernetes' default for both
	if value != nil {
		number = *value
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
	o, err := s.getObject(ctx, ref)
	if err != nil {
		return Revision{}, target{ref.GVR(), ref.Namespace, ref.Name}.wrap("get", err)
	}
	return Revision{Number: o.Annotations[revisionAnnotation], Available: o.Status.AvailableReplicas}, nil
}
