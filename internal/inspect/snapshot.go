package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// snapshot is an owner and its pods. The pods were read after the owner.
type snapshot struct {
	owner store.Owner
	// now is when the read of the owner ended, by this machine's clock.
	now time.Time
	// written is when idalloc last wrote the owner, zero if the server does not tell.
	written time.Time
	// changed is when the owner was last written, except for its status, zero if the server does not tell.
	changed time.Time
	// pods are the owner's pods and the pods that lock one of its slots, by name.
	pods    map[string]pod
	leases  leases
	rollout rollout
	// accounts are the creation times of the pods' service accounts, zero if they may not be read.
	accounts map[string]time.Time
	// copied is a live pod that the map names but that is not the owner's: the map was copied from another workload. It is "" if there is none.
	copied string
	// refused is why the API server refuses writes on pods, by pod name. It contains only pods that were tested.
	refused map[string]string
	// mapRefused is why the API server refuses writes of the map, or "" if it does not or was not tested.
	mapRefused string
	// adopted contains ReplicaSets whose names do not show their owner, with true if they are this owner's. A Deployment may adopt another one's ReplicaSets,
	// and kinds of --kind may give them any names.
	adopted map[string]bool
	// frozen is a ReplicaSet for which the controller waits, because the same Deployment made it and it has another owner. It is "" if there is none.
	frozen string
}

// rollout describes what a Kubernetes controller will do with the owner's pods.
type rollout struct {
	// finished: the owner is a Job that makes no more pods.
	finished bool
	// outdated are the revisions that are older than the current one and whose pods have no trace of idalloc.
	outdated map[string]bool
	// current is the name of the owner's current revision, as its pods have it in a label. It is "" if no waiter is of that revision.
	current string
	// overdue is the Deployment controller's message about a rollout without progress, or "".
	overdue string
	// told are Events in which the controller explains why it gives no ids. budgets are reasons why it can never evict a pod.
	told    []told
	budgets []string
	// rests is until when ids rest, as the controller said in Events.
	rests map[int]time.Time
	// resourceVersion is the owner's resourceVersion after the pods were read.
	resourceVersion string
}

// decode decodes an owner. An owner of a further kind is read again, because its count comes from its scale subresource.
func decode(ctx context.Context, s *store.Store, ref kinds.Ref, whole *unstructured.Unstructured) (store.Owner, error) {
	if ref.Resource != "" {
		return s.GetOwner(ctx, ref)
	}
	var object wire.Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &object); err != nil {
		return store.Owner{}, err
	}
	return store.DecodeOwner(ref, &object, nil)
}

// read reads an owner, its pods and its Leases. Errors: as of store.Get and store.EachFullPod.
func read(ctx context.Context, s *store.Store, ref kinds.Ref) (snapshot, error) {
	whole, err := s.GetWhole(ctx, ref)
	if err != nil {
		return snapshot{}, err
	}
	owner, err := decode(ctx, s, ref, whole)
	if err != nil {
		return snapshot{}, err
	}
	now := snapshot{
		owner: owner, now: s.Clock.Now(), written: store.LastWrite(whole.GetManagedFields()), changed: lastChange(whole.GetManagedFields()),
		pods: map[string]pod{}, refused: map[string]string{}, rollout: rollout{finished: finished(whole)},
	}
	for _, selector := range census.Selectors(owner) {
		before := maps.Clone(now.pods)
		again := func() { now.pods = maps.Clone(before) }
		err := s.EachFullPod(ctx, owner.Namespace, metav1.ListOptions{LabelSelector: selector}, again, func(u *unstructured.Unstructured) {
			if known, ok := now.pods[u.GetName()]; !ok || known.UID != string(u.GetUID()) {
				now.pods[u.GetName()] = newPod(u, owner, selector == owner.Selector)
			}
		})
		if err != nil {
			return snapshot{}, err
		}
	}
	now.adopted = now.adoptions(ctx, s)
	if now.copied, err = now.copies(ctx, s); err != nil {
		return snapshot{}, err
	}
	now.accounts, now.frozen = now.readAccounts(ctx, s), now.readFrozen(ctx, s, whole)
	if now.leases, err = readLeases(ctx, s, ref); err == nil {
		now.leases.refused = holdingOf(now).tryRenewals(ctx, s)
	}
	return now, err
}

// lastChange returns when an object was last written, except for its status, zero if the server does not tell.
func lastChange(fields []metav1.ManagedFieldsEntry) time.Time {
	var last time.Time
	for i := range fields {
		if f := &fields[i]; f.Subresource != "status" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// adoptions returns the ReplicaSets whose names do not show their owner, with true if they are this owner's. It leaves out what it may not read.
func (n snapshot) adoptions(ctx context.Context, s *store.Store) map[string]bool {
	adopted := map[string]bool{}
	for _, p := range n.pods {
		named := p.controller == n.owner.Name && !p.namesake || n.owner.Rolls() && p.controller == n.owner.Name+"-"+p.template
		if _, known := adopted[p.controller]; known || !n.owner.OverSets() || !p.Owned || p.controller == "" || named {
			continue
		}
		rs, err := s.GetMetadata(ctx, kinds.Ref{APIVersion: "apps/v1", Kind: kinds.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err == nil {
			adopted[p.controller] = metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: n.owner.UID})
		}
	}
	return adopted
}

// readFrozen returns the ReplicaSet for which the controller waits, or "" if there is none or it may not be read.
func (n snapshot) readFrozen(ctx context.Context, s *store.Store, whole *unstructured.Unstructured) string {
	waits := slices.ContainsFunc(slices.Collect(maps.Values(n.pods)), func(p pod) bool { return p.gated })
	selector := n.owner.Selector
	switch {
	case !waits || !n.owner.Rolls() && (!n.owner.Is(kinds.ReplicaSet) || whole.GetAnnotations()[revisionKey] == "" || whole.GetAnnotations()[assignment.AdoptKey] == n.owner.Name):
		return ""
	case !n.owner.Rolls():
		same := whole.GetLabels()
		delete(same, "pod-template-hash")
		selector = labels.SelectorFromSet(same).String()
	}
	sets, err := s.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}).Namespace(n.owner.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	for _, set := range sets.Items {
		c := metav1.GetControllerOfNoCopy(&set)
		own := set.GetUID() == n.owner.UID || c != nil && c.UID == n.owner.UID
		wants, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		has, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
		if set.GetAnnotations()[revisionKey] != "" && !own && wants+has > 0 && (c == nil || !n.owner.Rolls()) {
			return set.GetName()
		}
	}
	return ""
}

// copies returns a live pod that the map names but that is not the owner's, or "". It checks only the first such name: one request tells whether the map was
// copied from another workload.
func (n snapshot) copies(ctx context.Context, s *store.Store) (string, error) {
	slots := n.owner.Record.State.Slots
	for _, id := range slots.IDs() {
		if _, known := n.pods[slots[id]]; known {
			continue
		}
		pod, err := s.GetFullPod(ctx, n.owner.Namespace, slots[id])
		switch {
		case errors.Is(err, request.ErrGone):
			return "", nil
		case err != nil:
			return "", err
		case newPod(pod, n.owner, false).live():
			return slots[id], nil
		}
		return "", nil
	}
	return "", nil
}

// readAccounts returns the creation times of the pods' service accounts, by name. The time is zero if an account may not be read.
func (n snapshot) readAccounts(ctx context.Context, s *store.Store) map[string]time.Time {
	made := map[string]time.Time{}
	accounts := s.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(n.owner.Namespace)
	for _, p := range n.pods {
		if _, asked := made[p.account]; asked || p.account == "" {
			continue
		}
		made[p.account] = time.Time{}
		if account, err := accounts.Get(ctx, p.account, metav1.GetOptions{}); err == nil {
			made[p.account] = account.CreationTimestamp.Time
		}
	}
	return made
}

// tryWrites tests by dry runs which pods cannot be written, among those on which the controller has something to write: they wait, or know an older count.
func (n *snapshot) tryWrites(ctx context.Context, s *store.Store) {
	h, tried := holdingOf(*n), 0
	for _, name := range h.names {
		p := n.pods[name]
		old := p.known != "" && p.known != number(n.owner.Count) && p.Receipt.Slot() < n.owner.Count
		if p.assign() == "" || !p.live() || !p.Owned || p.Terminating || !old && p.Receipt.Locked() && (p.given != "" || p.byAgent) {
			continue
		}
		if tried++; tried > mostTried {
			return
		}
		n.tryWrite(ctx, s, p)
	}
}

func (n *snapshot) tryWrite(ctx context.Context, s *store.Store, p pod) {
	if why := check.WriteRefused(ctx, s, n.writer(p), p.byController, check.Object{Resource: store.Pods, Name: p.Name}); why != "" {
		n.refused[p.Name] = why
	}
}

// tryMap tests whether the map cannot be written, if a pod waits that the map does not name.
func (n *snapshot) tryMap(ctx context.Context, s *store.Store) {
	for _, p := range holdingOf(*n).waiters {
		if _, named := n.owner.Record.State.Slots.Of(p.Name); !named {
			n.mapRefused = check.WriteRefused(ctx, s, n.writer(p), p.assign() != "", check.Object{Resource: n.owner.GVR(), Name: n.owner.Name})
			return
		}
	}
}

// writer returns the pod in the form that dry runs need.
func (n snapshot) writer(p pod) check.Pod {
	return check.Pod{Namespace: n.owner.Namespace, Name: p.Name, UID: p.UID, Account: p.account}
}

// finished reports whether a Job is Complete or Failed, according to its conditions.
func finished(u *unstructured.Unstructured) bool {
	return condition(u, "Complete")["status"] == "True" || condition(u, "Failed")["status"] == "True"
}
