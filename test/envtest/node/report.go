package node

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the pod's status whenever it changed, until the final one is
// written. Changes during a write are put into the next one.
func (p *pod) report() {
	defer close(p.reported)
	var last corev1.PodStatus
	send := func(ctx context.Context) error { return p.send(ctx, &last) }
	for {
		final := false
		select {
		case <-p.dirty:
		case <-p.over:
			final = true
		case <-p.node.ctx.Done():
			return
		}
		if err := p.node.retry(p.node.ctx, send); err != nil || final {
			return
		}
	}
}

// send writes the present status unless it is the last one. A pod whose object
// is gone, or is another one's by now, has nothing to report.
func (p *pod) send(ctx context.Context, last *corev1.PodStatus) error {
	status := p.status()
	stamp(metav1.Now(), status.Conditions, last.Conditions)
	if apiequality.Semantic.DeepEqual(status, *last) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// The UID makes the API server refuse the patch for a new pod of the same name.
		"metadata": map[string]any{"uid": p.object.UID},
		"status":   status,
	})
	if err != nil {
		return err
	}
	// A strategic merge leaves the conditions of others alone.
	_, err = p.node.client.CoreV1().Pods(p.object.Namespace).Patch(ctx, p.object.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		*last = status
		return nil
	case apierrors.IsInvalid(err):
		p.log.Error(err, "the API server refuses the pod's status")
		*last = status
		return nil
	default:
		return err
	}
}

// settle waits until the final status is written, and deletes the object if its deletion was asked for, now or later.
func (p *pod) settle() {
	<-p.reported
	for {
		p.mu.Lock()
		latest := p.latest
		p.mu.Unlock()
		switch {
		case latest == nil || p.node.ctx.Err() != nil:
			return
		case latest.DeletionTimestamp != nil:
			_ = p.node.retry(p.node.ctx, p.remove) // fails only when the node is stopped
			return
		}
		select {
		case <-p.changed:
		case <-p.node.ctx.Done():
		}
	}
}

// remove deletes the pod's object for good.
func (p *pod) remove(ctx context.Context) error {
	now := int64(0)
	err := p.node.client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &p.object.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
