package inspect

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// revisionKey is the annotation with the revision number that the Deployment controller sets on the Deployment and its ReplicaSets.
const revisionKey = "deployment.kubernetes.io/revision"

// readRollout reads the owner again, with the status that its controllers write.
func (n *snapshot) readRollout(ctx context.Context, s *store.Store) error {
	ref := n.owner.Ref
	u, err := s.GetWhole(ctx, ref)
	if err != nil {
		return err
	}
	n.rollout = rollout{resourceVersion: u.GetResourceVersion(), finished: finished(u), overdue: overdue(u), outdated: map[string]bool{}}
	n.rollout.told, n.rollout.budgets = n.readTold(ctx, s), n.readBudgets(ctx, s, u)
	return n.readRevisions(ctx, s, u)
}

// overdue returns the message of a Deployment's condition about a rollout without progress, or "". A condition about an older spec does not count, because the
// rollout may just have been repaired.
func overdue(u *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	c := condition(u, "Progressing")
	if observed < u.GetGeneration() || c["status"] != "False" || c["reason"] != "ProgressDeadlineExceeded" {
		return ""
	}
	message, _ := c["message"].(string)
	return cmp.Or(message, "ProgressDeadlineExceeded")
}

// readRevisions finds the current revision and the outdated ones among the waiters' revisions. Outdated revisions are older and without idalloc. They exist
// while idalloc is being added to a Deployment, or if that rollout is paused.
//
// It does nothing for other kinds. Their pods are siblings in every revision, so pods with idalloc give slots to pods without.
func (n *snapshot) readRevisions(ctx context.Context, s *store.Store, u *unstructured.Unstructured) error {
	if !n.owner.Rolls() {
		return nil
	}
	known := holdingOf(*n)
	looked := map[string]bool{}
	for _, p := range known.waiters {
		if looked[p.revision] || p.controller == "" {
			continue
		}
		looked[p.revision] = true
		rs, err := s.GetMetadata(ctx, kinds.Ref{APIVersion: "apps/v1", Kind: kinds.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err != nil && !errors.Is(err, request.ErrGone) {
			return err
		}
		switch {
		case err != nil || revision(rs.Annotations) < revision(u.GetAnnotations()):
			n.rollout.outdated[p.revision] = !known.signs[p.revision]
		case revision(rs.Annotations) == revision(u.GetAnnotations()):
			n.rollout.current = p.revision
		}
	}
	return nil
}

func revision(annotations map[string]string) int {
	n, _ := strconv.Atoi(annotations[revisionKey]) // 0 without one
	return n
}
