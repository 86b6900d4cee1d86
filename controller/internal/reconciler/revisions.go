package reconciler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// revisions reads the owner's ReplicaSets from the cache, and finds the current one.
func (p *pass) revisions(ctx context.Context) error {
	if !p.ref.OverSets() {
		return nil
	}
	list := metaList(replicaSets)
	if err := p.listCached(ctx, list, p.ref.Namespace, string(p.owner.UID)); err != nil {
		return err
	}
	p.among(list.Items)
	if p.current != "" || p.owner.Rollout.Revision == "" { // the scale subresource has no revision
		return nil
	}
	return p.allSets(ctx) // the current ReplicaSet lacks the label, or the cache does not have it yet
}

// allSets reads the owner's ReplicaSets from the API server, with or without the label.
func (p *pass) allSets(ctx context.Context) error {
	list := metaList(replicaSets)
	if err := p.listLabelled(ctx, list, p.owner.Selector); err != nil {
		return err
	}
	p.among(list.Items)
	return nil
}

func (p *pass) among(items []metav1.PartialObjectMetadata) {
	p.sets, p.current = make(map[string]bool, len(items)), ""
	for i := range items {
		set := &items[i]
		if c := metav1.GetControllerOfNoCopy(set); c == nil || c.UID != p.owner.UID {
			continue
		}
		if number := set.Annotations[revisionKey]; number != "" && number == p.owner.Rollout.Revision {
			p.current = string(set.UID)
		}
		_, p.sets[string(set.UID)] = set.Labels[receipt.AssignLabel]
	}
}

// listLabelled lists the objects with these labels from the API server.
func (p *pass) listLabelled(ctx context.Context, list client.ObjectList, labelled string, more ...client.ListOption) error {
	selector, err := labels.Parse(labelled)
	if err == nil {
		err = p.server.List(ctx, list, append(more, client.InNamespace(p.ref.Namespace), client.MatchingLabelsSelector{Selector: selector})...)
	}
	if err != nil {
		return fmt.Errorf("read %s: list what has the labels %q: %w", p.ref, labelled, err)
	}
	return nil
}

// foreign reports whether the pod's controller is a ReplicaSet that is not in sets.
func foreign(pod metav1.Object, sets map[string]bool) bool {
	c := metav1.GetControllerOfNoCopy(pod)
	if !kinds.IsReplicaSet(c) {
		return false
	}
	_, known := sets[string(c.UID)]
	return !known
}

// owns reports whether the pod belongs to the owner.
func (p *pass) owns(pod metav1.Object) bool {
	c := metav1.GetControllerOfNoCopy(pod)
	if c == nil {
		return false
	}
	_, ours := p.sets[string(c.UID)]
	return ours || c.UID == p.owner.UID && !p.owner.Controlled && !p.ref.Rolls()
}

// runsHere reports whether the pod's program began under this owner, and was not told of another one since.
func (p *pass) runsHere(pod metav1.Object) bool {
	var id identity.Identity
	err := id.UnmarshalJSON([]byte(pod.GetAnnotations()[receipt.IdentityKey]))
	return err == nil && id.Pod == pod.GetName() && id.Owner.String() == p.ref.String()
}

// shows reports whether a pod is known with this receipt.
func shows(known *podMeta, text string) bool {
	return known != nil && known.Annotations[receipt.Key] == text
}
