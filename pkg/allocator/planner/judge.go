package planner

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Reasons to refuse the slot to a pod that asks for it.
const (
	notAlive   = "it does not live"
	notWaiting = "it does not wait for a slot"
	notOurs    = "it and this pod are not of one workload"
	notNewer   = "it is of no newer revision, or Kubernetes keeps this pod"
)

// Judge finds out whether the requester should have the slot. Otherwise work could stop for a dead pod, or for one of an older revision.
func (p *Planner) Judge(ctx context.Context) error {
	s, r := p.o.Process.State(), &p.view.request
	id := s.Locks.Lock.Share.ID
	by := p.view.owner.Record.State.Handover[id]
	refused, err := p.refuses(ctx, s, by)
	if err != nil {
		return err
	}
	switch r.by, r.granted = by, refused == ""; {
	case refused != "":
		p.plans.drops = true
		r.denied.Again(p.o.Clock.Now())
		r.nextAt = p.o.Clock.Now().Add(r.denied.Damping())
		if by != r.refused {
			r.refused = by
			p.o.Tell(event.NotHandedOver{ID: id, Requester: by, Why: event.ObstacleDropped, Detail: refused})
		}
	case r.told != by:
		r.told = by
		p.o.Tell(event.Asked{ID: id, Requester: by})
	}
	return nil
}

// refuses explains why the pod of this name should not have the slot, or returns "". It should have the slot if it is alive, belongs to this owner and
// waits, and if it is of the current revision and this pod is not, or this pod is condemned. No other request in the map stops work.
func (p *Planner) refuses(ctx context.Context, s source.State, by string) (why string, err error) {
	owner := p.view.owner
	pod, err := p.o.Store.GetLivePod(ctx, p.o.Namespace, by)
	switch {
	case err != nil:
		return "", err
	case pod == nil:
		return notAlive, nil
	}
	r, _ := receipt.Of(pod, s.Owner.String())
	// A pod behind its gate has written nothing yet.
	waits := r.State == receipt.Waits || r.State == receipt.None && pod.Labels[receipt.AssignLabel] == receipt.ByController
	if _, has := owner.Record.State.Slots.Of(by); has || !waits || pod.DeletionTimestamp != nil {
		return notWaiting, nil
	}
	if !owner.Rolls() {
		controller := metav1.GetControllerOfNoCopy(pod)
		switch {
		case controller == nil || controller.UID != owner.UID:
			return notOurs, nil
		case !owner.Condemned(s.Pod) || owner.Condemned(pod):
			return notNewer, nil
		}
		return "", nil
	}
	return p.refusesRevision(ctx, s.Pod, pod)
}

// refusesRevision returns why a holder should not hand its slot over to a requester of a Deployment, or "". It should if only the requester is of the current
// revision.
func (p *Planner) refusesRevision(ctx context.Context, holder, requester *metav1.PartialObjectMetadata) (why string, err error) {
	owner := p.view.owner
	own, err := p.o.Store.RevisionOf(ctx, holder)
	switch {
	case errors.Is(err, request.ErrGone): // it no longer belongs to a revision
	case err == nil && own.Number != "" && own.Controller != owner.UID: // the Deployment has released the ReplicaSet
		p.view.suspect()
		return notOurs, nil
	case err != nil:
		return "", err
	case own.Current(owner.Rollout, owner.UID):
		return notNewer, nil
	}
	its, err := p.o.Store.RevisionOf(ctx, requester)
	switch {
	case errors.Is(err, request.ErrGone), err == nil && its.Controller != owner.UID:
		return notOurs, nil
	case err != nil:
		return "", err
	case !its.Current(owner.Rollout, owner.UID):
		return notNewer, nil
	}
	return "", nil
}
