package slots

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// revisionKey is where the Deployment controller counts revisions, on Deployment and ReplicaSets.
const revisionKey = "deployment.kubernetes.io/revision"

// rollout is what a Kubernetes controller will do with the owner's pods.
type rollout struct {
	// finished says that a Job makes no more pods.
	finished bool
	// outdated are the revisions that are not the owner's current one and of which no pod shows a sign
	// of idalloc.
	outdated map[string]bool
	// resourceVersion is the owner's after the pods were read.
	resourceVersion string
}

// readRollout reads the owner again, with what the controllers say about it.
func (n *snapshot) readRollout(ctx context.Context, s *store.Store) error {
	ref := n.owner.Ref
	rctx, cancel := context.WithTimeout(ctx, store.RequestTimeout)
	defer cancel()
	u, err := s.Dynamic.Resource(ref.GVR()).Namespace(ref.Namespace).Get(rctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", store.ErrGone, err)
	case err != nil:
		return fmt.Errorf("%w: read %s again: %w", store.ErrNoAnswer, ref, err)
	}
	n.rollout = rollout{resourceVersion: u.GetResourceVersion(), finished: finished(u), outdated: map[string]bool{}}
	return n.readRevisions(ctx, s, u)
}

// finished reads a Job's conditions.
func finished(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed") {
			return true
		}
	}
	return false
}

// readRevisions finds the waiters' revisions that do not run idalloc and never will: a Deployment from
// before idalloc was added, whose rollout goes on or is paused. Pods of the other kinds are siblings
// whatever their revision, so the pods that do run idalloc give them their slots.
func (n *snapshot) readRevisions(ctx context.Context, s *store.Store, u *unstructured.Unstructured) error {
	if n.owner.Kind != store.Deployment {
		return nil
	}
	seen := map[string]bool{} // revisions that run idalloc, or were looked at
	for name, p := range n.pods {
		_, named := n.owner.Record.State.Slots.Of(name)
		if named || p.receipt != nil || p.gaveUp || p.damage != "" {
			seen[p.revision] = true
		}
	}
	for _, p := range n.waiters() {
		if seen[p.revision] || p.controller == "" {
			continue
		}
		seen[p.revision] = true
		rs, err := s.GetMetadata(ctx, store.Ref{APIVersion: "apps/v1", Kind: store.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err != nil && !errors.Is(err, store.ErrGone) {
			return err
		}
		n.rollout.outdated[p.revision] = err != nil || revision(rs.Annotations) < revision(u.GetAnnotations())
	}
	return nil
}

func revision(annotations map[string]string) int {
	n, err := strconv.Atoi(annotations[revisionKey])
	if err != nil {
		return 0
	}
	return n
}
