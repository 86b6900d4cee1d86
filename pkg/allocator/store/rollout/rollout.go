package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// revisionAnnotation is set by the Deployment controller: on the Deployment to the current revision's number, and on each ReplicaSet to its own.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// View is how a Deployment replaces its pods.
type View struct {
	// Revision is the number of the current revision. It is empty until the controller has seen the Deployment.
	Revision string
	// Recreate: all old pods end before new ones start.
	Recreate bool
	// MaxUnavailable and MaxSurge are numbers of pods. Percentages are rounded as in Kubernetes.
	MaxUnavailable, MaxSurge int
	// Paused: the Deployment is paused.
	Paused bool
	// MinReady is how long a pod must be Ready before it is available.
	MinReady time.Duration
	// BlocksBelow is the number of replicas below which Blocks is true because MaxUnavailable, a percentage, is rounded down to 0. It is 0 if there is no
	// such number.
	BlocksBelow int
	// Progress has the counts of the Deployment's status. It changes when a pod becomes available. If another pod stopped being available before the
	// controller wrote the status, it changes when that pod is removed.
	Progress Progress
}

// Progress counts a Deployment's pods: all, those of the current revision, the Ready ones, and the available ones.
type Progress struct{ Replicas, Updated, Ready, Available int }

// Blocks reports whether a rolling update starts new pods, but ends no old one until a new one is Ready. If pods become Ready only with an id, such an
// update needs hand-overs.
func (v View) Blocks() bool { return !v.Recreate && v.MaxUnavailable == 0 }

// Of reads how a Deployment of count pods replaces them. An error names the field of the strategy.
func Of(o *wire.Object, count int) (r View, err error) {
	r.Revision = o.Annotations[revisionAnnotation]
	r.Progress = Progress{o.Status.Replicas, o.Status.UpdatedReplicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas}
	r.Paused, r.MinReady = o.Spec.Paused, time.Duration(o.Spec.MinReadySeconds)*time.Second
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
		r.MaxUnavailable = 1 // as the Deployment controller does, so that the update can proceed at all
	}
	r.BlocksBelow = blocksBelow(rolling.MaxSurge, rolling.MaxUnavailable)
	return r, nil
}

// Running reports whether a rolling update is under way. A Deployment's condition has the reason NewReplicaSetAvailable from the end of an update to the
// begin of the next one, regardless of its pods. Without progressDeadlineSeconds there is no condition, and the pods are counted. A StatefulSet's revisions
// are equal except during an update. With OnDelete they may differ for a long time.
func Running(ref kinds.Ref, o *wire.Object) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == "Progressing" {
			return c.Reason != "NewReplicaSetAvailable"
		}
	}
	return ref.Rolls() && o.Status.UpdatedReplicas < o.Status.Replicas || o.Status.CurrentRevision != o.Status.UpdateRevision
}

// blocksBelow returns View.BlocksBelow. Both values must be valid.
func blocksBelow(maxSurge, maxUnavailable *intstr.IntOrString) int {
	if surge, _ := resolve(maxSurge, 1, true); surge == 0 {
		return 0 // without a surge, Kubernetes raises a MaxUnavailable of 0 to 1
	}
	if maxUnavailable != nil && maxUnavailable.Type == intstr.Int {
		return 0
	}
	percent, _ := resolve(maxUnavailable, 100, false)
	if percent <= 0 || percent >= 100 {
		return 0
	}
	return (100 + percent - 1) / percent
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
	// Number is the revision's number. It is empty until the controller has set it.
	Number string
	// Available is the number of its available pods.
	Available int
	// Controller is the UID of the Deployment. It is empty for a ReplicaSet without a controller.
	Controller types.UID
}

// RevisionOf reads the revision from a ReplicaSet.
func RevisionOf(set *wire.Object) Revision {
	r := Revision{Number: set.Annotations[revisionAnnotation], Available: set.Status.AvailableReplicas}
	if above := metav1.GetControllerOfNoCopy(set); above != nil {
		r.Controller = above.UID
	}
	return r
}

// Current reports whether this is the current revision of a Deployment with this View and UID. A ReplicaSet left by a deleted Deployment may have the same
// number.
func (r Revision) Current(v View, deployment types.UID) bool {
	return r.Number != "" && r.Number == v.Revision && r.Controller == deployment
}
