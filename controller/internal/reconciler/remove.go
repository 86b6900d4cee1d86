package reconciler

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// verify reads everything that a removal depends on from the API server.
func (p *pass) verify(ctx context.Context, _ decision.Decision) (err error) {
	owner, err := p.store.GetOwner(ctx, p.ref)
	if err != nil {
		return fmt.Errorf("read %s: %w", p.ref, err)
	}
	p.owner, p.memory.read = owner, owner
	for _, read := range []func(context.Context) error{
		p.revisions, p.freeze, p.list, func(ctx context.Context) error { return p.evidence(ctx, store.Sought{}) },
	} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	p.world.Verified = true
	return nil
}

func (p *pass) remove(ctx context.Context, d decision.Decision) (err error) {
	for _, r := range d.Remove {
		err = errors.Join(err, p.removeOne(ctx, r))
	}
	return err
}

// removeOne removes a pod, unless it has changed since it was read.
func (p *pass) removeOne(ctx context.Context, r decision.Removal) error {
	meta := p.metas[r.Pod]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ref.Namespace, Name: r.Pod}}
	only := &metav1.Preconditions{UID: &meta.UID, ResourceVersion: &meta.ResourceVersion}
	var err error
	if r.Evict {
		err = p.writer.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			ObjectMeta: pod.ObjectMeta, DeleteOptions: &metav1.DeleteOptions{Preconditions: only},
		})
	} else {
		err = p.writer.Delete(ctx, pod, client.Preconditions(*only))
	}
	switch {
	case err == nil:
		p.metrics.removed(r.Cause)
		// Log: the controller removed a pod; an Event of the pod says the same.
		p.log.Info("pod removed", "pod", r.Pod, "id", r.ID, "cause", r.Cause)
		// Event: Normal: on a pod: the controller removed it so that another one gets its id, or because its id was above the count. The workload gets the first
		// such Event of each minute.
		// Do: nothing; idalloc.dev/evict limits how many at a time.
		p.event(ctx, aboutPod(meta), p.ref.Namespace, kubeevent.Normal, "PodRemoved", fmt.Sprintf("removed, because it %s", r.Cause))
		p.event(ctx, p.owner.About(), p.ref.Namespace, kubeevent.Normal, "PodRemoved", fmt.Sprintf("removed pod %s with id %d, because it %s", r.Pod, r.ID, r.Cause))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", request.ErrConflict, err)
	case !errors.As(err, new(apierrors.APIStatus)): // no answer
		return fmt.Errorf("remove pod %s: %w", r.Pod, err)
	}
	p.metrics.refused.Inc()
	p.requeue(wait.Jitter(refusedAfter, 1))
	// Event: the API server does not let the controller remove a pod: a PodDisruptionBudget allows no disruption, or two of them select the pod.
	// Do: what the message says, or remove the pod yourself.
	p.event(ctx, p.owner.About(), p.ref.Namespace, kubeevent.Warning, "RemovalRefused", fmt.Sprintf(
		"pod %s with id %d %s; the API server does not let it go: %v%s", r.Pod, r.ID, r.Cause, err, p.lost()))
	return nil
}
