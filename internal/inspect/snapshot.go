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
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// snapshot is an owner and its pods. The pods were read after the owner.
type snapshot struct {
	owner store.Owner
	// now is when the owner had been read, by this machine's clock.
	now time.Time
	// written is when idalloc wrote the owner last, zero if the server does not say.
	written time.Time
	// changed is when anything but its status was written last on the owner, zero if the server does not say.
	changed time.Time
	// pods are the owner's pods, and the pods with a lock of one of its slots, by name.
	pods    map[string]pod
	leases  leases
	rollout rollout
	// accounts are the pods' service accounts and when they were made, zero if that may not be read.
	accounts map[string]time.Time
	// copied is a pod that the map names, and that lives and is not the owner's: the map is that of another workload. It is empty if there is none.
	copied string
	// refused is why the API server refuses writes on pods, by their names. It has only pods that were tried.
	refused map[string]string
	// mapRefused is why the API server refuses writes of the map, empty if it does not or was not asked.
	mapRefused string
	// adopted says of ReplicaSets with strange names whether they are the owner's. A Deployment may take one over from another one, and a further kind gives them any names.
	adopted map[string]bool
	// frozen is a ReplicaSet for which the controller waits, because it was made by the same Deployment and has another owner. It is empty if there is none.
	frozen string
}

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
	// told are Events in which the controller says why it gives no ids, and budgets say what never lets it evict a pod.
	told    []told
	budgets []string
	// resourceVersion is that of the owner after the pods were read.
	resourceVersion string
}

// decode decodes an owner. One of a further kind is read once more, because its subresource counts it.
func decode(ctx context.Context, s *store.Store, ref store.Ref, whole *unstructured.Unstructured) (store.Owner, error) {
	if ref.Resource != "" {
		return s.Get(ctx, ref)
	}
	var object store.Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &object); err != nil {
		return store.Owner{}, err
	}
	return store.DecodeOwner(ref, &object, nil)
}

// read reads an owner, its pods and its Leases. Errors: as of store.Get and store.EachFullPod.
func read(ctx context.Context, s *store.Store, ref store.Ref) (snapshot, error) {
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

// lastChange returns when an object was written last, but for its status, zero if the server does not say.
func lastChange(fields []metav1.ManagedFieldsEntry) time.Time {
	var last time.Time
	for i := range fields {
		if f := &fields[i]; f.Subresource != "status" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// adoptions returns the ReplicaSets of which the names do not say that they are the owner's, and whether they are. What it may not read, it leaves
// out.
func (n snapshot) adoptions(ctx context.Context, s *store.Store) map[string]bool {
	adopted := map[string]bool{}
	for _, p := range n.pods {
		named := p.controller == n.owner.Name && !p.namesake || n.owner.Rolls() && p.controller == n.owner.Name+"-"+p.template
		if _, known := adopted[p.controller]; known || !n.owner.OverSets() || !p.Owned || p.controller == "" || named {
			continue
		}
		rs, err := s.GetMetadata(ctx, store.Ref{APIVersion: "apps/v1", Kind: store.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err == nil {
			adopted[p.controller] = metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: n.owner.UID})
		}
	}
	return adopted
}

// readFrozen returns the ReplicaSet for which the controller waits. What it may not read, it leaves out.
func (n snapshot) readFrozen(ctx context.Context, s *store.Store, whole *unstructured.Unstructured) string {
	waits := slices.ContainsFunc(slices.Collect(maps.Values(n.pods)), func(p pod) bool { return p.gated })
	selector := n.owner.Selector
	switch {
	case !waits || !n.owner.Rolls() && (!n.owner.Is(store.ReplicaSet) || whole.GetAnnotations()[revisionKey] == "" || whole.GetAnnotations()[assignment.AdoptKey] == n.owner.Name):
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

// copies returns the first pod that the map names and that is not among the owner's, if it lives. One request tells whether that map is another
// workload's.
func (n snapshot) copies(ctx context.Context, s *store.Store) (string, error) {
	slots := n.owner.Record.State.Slots
	for _, id := range slots.IDs() {
		if _, known := n.pods[slots[id]]; known {
			continue
		}
		pod, err := s.GetFullPod(ctx, n.owner.Namespace, slots[id])
		switch {
		case errors.Is(err, store.ErrGone):
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

// readAccounts returns when the service accounts of the pods were made, by their names. It has none that may not be read.
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

// tryWrites finds out which pods cannot be written, of those on which the controller has something to write: they wait, or know an older count.
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

// tryMap finds out, if a pod waits that the map does not name, whether the map cannot be written.
func (n *snapshot) tryMap(ctx context.Context, s *store.Store) {
	for _, p := range holdingOf(*n).waiters {
		if _, named := n.owner.Record.State.Slots.Of(p.Name); !named {
			n.mapRefused = check.WriteRefused(ctx, s, n.writer(p), p.assign() != "", check.Object{Resource: n.owner.GVR(), Name: n.owner.Name})
			return
		}
	}
}

// writer is a pod for whom a dry run is tried.
func (n snapshot) writer(p pod) check.Pod {
	return check.Pod{Namespace: n.owner.Namespace, Name: p.Name, UID: p.UID, Account: p.account}
}

// finished reports whether a Job is Complete or Failed, according to its conditions.
func finished(u *unstructured.Unstructured) bool {
	return condition(u, "Complete")["status"] == "True" || condition(u, "Failed")["status"] == "True"
}
