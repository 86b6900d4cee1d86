package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// hashLabel distinguishes the ReplicaSets of a Deployment. All their other labels come from the template.
const hashLabel = "pod-template-hash"

// freeze checks whether the owner is frozen. It reads the ReplicaSets from the API server, because the watches of pods, Deployments and ReplicaSets have no
// order.
func (p *pass) freeze(ctx context.Context) error {
	p.world.Owner.Frozen = ""
	var sets []metav1.PartialObjectMetadata
	selector, err := p.siblings(ctx)
	if err != nil {
		return err
	}
	if selector != "" {
		list := metaList(replicaSets)
		if err := p.listLabelled(ctx, list, selector); err != nil {
			return err
		}
		sets = list.Items
	}
	if p.ref.Rolls() {
		p.among(sets)
	}
	for i := range sets {
		if sets[i].UID == p.owner.UID && metav1.GetControllerOfNoCopy(&sets[i]) != nil {
			p.owner.Controlled = true // it has been adopted
		}
		if p.ref.Is(kinds.ReplicaSet) && p.owner.Annotations[assignment.AdoptKey] == p.ref.Name {
			continue // the user wants it to stay alone
		}
		holds, err := p.holdsUp(ctx, &sets[i])
		if err != nil {
			return err
		}
		if holds {
			p.world.Owner.Frozen = sets[i].Name
		}
	}
	if since(&p.memory.frozen, p.world.Owner.Frozen != "", p.world.Now); p.world.Owner.Frozen != "" {
		p.requeue(wait.Jitter(goneAfter, 1)) // no watch of this owner shows changes of another owner's ReplicaSet
	}
	return nil
}

// siblings returns a selector for the ReplicaSets that may be about to change owners together with this owner or its ReplicaSets, or "" if there are none. The
// cache has no labels of ReplicaSets.
func (p *pass) siblings(ctx context.Context) (string, error) {
	if p.ref.Rolls() {
		return p.owner.Selector, nil
	}
	meta, err := p.ownerMeta(ctx, p.ref)
	if err != nil || !p.ref.Is(kinds.ReplicaSet) || meta.Annotations[revisionKey] == "" {
		return "", nil //nolint:nilerr // the cache lacks a ReplicaSet without the label, which no pod of the controller has
	}
	if meta, err = p.store.GetMetadata(ctx, p.ref); err != nil {
		return "", err
	}
	same := maps.Clone(meta.Labels)
	maps.DeleteFunc(same, func(key, _ string) bool { return key == hashLabel || strings.HasPrefix(key, ownKeys) }) // a migration changes these labels
	return cmp.Or(labels.SelectorFromSet(same).String(), hashLabel), nil
}

// holdsUp reports whether this ReplicaSet freezes the owner.
func (p *pass) holdsUp(ctx context.Context, set *metav1.PartialObjectMetadata) (bool, error) {
	c := metav1.GetControllerOfNoCopy(set)
	s := decision.Set{Made: set.Annotations[revisionKey] != "", Own: set.UID == p.owner.UID || c != nil && c.UID == p.owner.UID, Loose: c == nil || p.leaves(ctx, c, set.Namespace)}
	if !s.Freezes(p.world.Owner) {
		return false, nil
	}
	pods := &corev1.PodList{}
	if err := p.listCached(ctx, pods, set.Namespace, string(set.UID)); err != nil {
		return false, err
	}
	if slices.ContainsFunc(pods.Items, func(q corev1.Pod) bool { return !census.Finished(string(q.Status.Phase)) }) {
		return true, nil
	}
	if generation, known := p.memory.unused[set.UID]; known && generation == set.Generation {
		return false, nil
	}
	ref, _ := kinds.NewRef("apps/v1", kinds.ReplicaSet, set.Namespace, set.Name)
	o, err := p.store.GetOwner(ctx, ref)
	switch {
	case errors.Is(err, request.ErrGone) || err == nil && o.UID != set.UID:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", ref, err)
	case o.Count > 0 || o.Pods > 0:
		return true, nil
	}
	if p.memory.unused == nil {
		p.memory.unused = map[types.UID]int64{}
	}
	p.memory.unused[set.UID] = o.Generation
	return false, nil
}

// leaves reports whether the ReplicaSet's controller is a Deployment that is gone or is being deleted.
func (p *pass) leaves(ctx context.Context, c *metav1.OwnerReference, namespace string) bool {
	ref, known := p.kinds.Ref(c.APIVersion, c.Kind, namespace, c.Name)
	if !known || !ref.Rolls() {
		return false
	}
	meta, err := p.ownerMeta(ctx, ref)
	return err != nil || meta.UID != c.UID || meta.DeletionTimestamp != nil
}
