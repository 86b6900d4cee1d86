package inspect

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// revisionKey is the annotation in which the Deployment controller counts revisions, on the Deployment and its ReplicaSets.
const revisionKey = "deployment.kubernetes.io/revision"

// rollout says what a Kubernetes controller will do with the owner's pods.
type rollout struct {
	// finished says that a Job makes no more pods.
	finished bool
	// outdated are the revisions that are older than the current one, and whose pods have no trace of idalloc.
	outdated map[string]bool
	// current is the name that pods have for the owner's current revision. It is empty if no waiter is of that revision.
	current string
	// overdue is the Deployment controller's message about a rollout without progress. It is empty if there is none.
	overdue string
	// resourceVersion is that of the owner after the pods were read.
	resourceVersion string
}

// readRollout reads the owner again, with the status that its controllers write.
func (n *snapshot) readRollout(ctx context.Context, s *store.Store) error {
	ref := n.owner.Ref
	u, err := s.GetWhole(ctx, ref)
	if err != nil {
		return err
	}
	n.rollout = rollout{resourceVersion: u.GetResourceVersion(), finished: finished(u), overdue: overdue(u), outdated: map[string]bool{}}
	return n.readRevisions(ctx, s, u)
}

// condition returns the object's condition of this type, or nil.
func condition(u *unstructured.Unstructured, of string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == of {
			return m
		}
	}
	return nil
}

// finished reports whether a Job is Complete or Failed, according to its conditions.
func finished(u *unstructured.Unstructured) bool {
	return condition(u, "Complete")["status"] == "True" || condition(u, "Failed")["status"] == "True"
}

// overdue returns the message of a Deployment's condition about a rollout without progress, or an empty text. A condition about an
// older spec does not count, because somebody may just have repaired the rollout.
func overdue(u *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	c := condition(u, "Progressing")
	if observed < u.GetGeneration() || c["status"] != "False" || c["reason"] != "ProgressDeadlineExceeded" {
		return ""
	}
	message, _ := c["message"].(string)
	return cmp.Or(message, "ProgressDeadlineExceeded")
}

// readRevisions finds out which of the waiters' revisions is the current one, and which ones are outdated: older, and without
// idalloc. There are such revisions while idalloc is being added to a Deployment, or if that rollout is paused.
//
// It does nothing for the other kinds. Their pods are siblings whatever their revision, so pods with idalloc give slots to pods
// without.
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

// signs returns the revisions of which a pod has a trace of idalloc.
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
