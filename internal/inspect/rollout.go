package inspect

import (
	"cmp"
	"context"
	"errors"
	"strconv"

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
	// current is the owner's current revision, as pods name it; empty if no waiter is of it.
	current string
	// overdue is what the Deployment controller says of a rollout that made no progress before its deadline.
	overdue string
	// resourceVersion is the owner's after the pods were read.
	resourceVersion string
}

// readRollout reads the owner again, with what the controllers say about it.
func (n *snapshot) readRollout(ctx context.Context, s *store.Store) error {
	ref := n.owner.Ref
	u, err := s.GetWhole(ctx, ref)
	if err != nil {
		return err
	}
	n.rollout = rollout{resourceVersion: u.GetResourceVersion(), finished: finished(u), overdue: overdue(u), outdated: map[string]bool{}}
	return n.readRevisions(ctx, s, u)
}

// condition reads one of an object's conditions, nil if it has none of this type.
func condition(u *unstructured.Unstructured, of string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == of {
			return m
		}
	}
	return nil
}

// finished reads a Job's conditions.
func finished(u *unstructured.Unstructured) bool {
	return condition(u, "Complete")["status"] == "True" || condition(u, "Failed")["status"] == "True"
}

// overdue reads a Deployment's conditions. What they say of an older spec does not count: the rollout may just
// have been repaired.
func overdue(u *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	c := condition(u, "Progressing")
	if observed < u.GetGeneration() || c["status"] != "False" || c["reason"] != "ProgressDeadlineExceeded" {
		return ""
	}
	message, _ := c["message"].(string)
	return cmp.Or(message, "ProgressDeadlineExceeded")
}

// readRevisions tells which of the waiters' revisions is the current one, and which do not run idalloc and never
// will: a Deployment from before idalloc was added, whose rollout goes on or is paused. Pods of the other kinds
// are siblings whatever their revision, so the pods that do run idalloc give them their slots.
func (n *snapshot) readRevisions(ctx context.Context, s *store.Store, u *unstructured.Unstructured) error {
	if !n.owner.Rolls() {
		return nil
	}
	seen := n.signs()
	looked := map[string]bool{}
	for _, p := range n.waiters() {
		if looked[p.revision] || p.controller == "" {
			continue
		}
		looked[p.revision] = true
		rs, err := s.GetMetadata(ctx, store.Ref{APIVersion: "apps/v1", Kind: store.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err != nil && !errors.Is(err, store.ErrGone) {
			return err
		}
		switch {
		case err != nil || revision(rs.Annotations) < revision(u.GetAnnotations()):
			n.rollout.outdated[p.revision] = !seen[p.revision]
		case revision(rs.Annotations) == revision(u.GetAnnotations()):
			n.rollout.current = p.revision
		}
	}
	return nil
}

// signs are the revisions of which a pod shows a sign of idalloc.
func (n snapshot) signs() map[string]bool {
	signs := map[string]bool{}
	for name, p := range n.pods {
		if _, named := n.owner.Record.State.Slots.Of(name); named || p.sign() {
			signs[p.revision] = true
		}
	}
	return signs
}

func revision(annotations map[string]string) int {
	n, err := strconv.Atoi(annotations[revisionKey])
	if err != nil {
		return 0
	}
	return n
}
