package reconciler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// confirm does T3.
func (p *pass) confirm(ctx context.Context, d decision.Decision) error {
	return p.evidence(ctx, store.Sought{IDs: d.Only, Since: p.newest()})
}

// evidence lists the locks of the owner, and of the former owners of its pods. A second list shows pods that run under the owner's ids but lock for another
// owner, or did so during the first list. The first list is not older than the pods of this pass, and the second is not older than the first. If the lists show
// pods that the pass does not know, the pass reads its pods once more. These may lock more than the list asked for, and may come from other former owners. So
// the evidence records what was asked.
func (p *pass) evidence(ctx context.Context, which store.Sought) error {
	which.Former = p.world.Former
	list, version, err := p.store.Receipts(ctx, p.ref, which)
	if err != nil {
		return fmt.Errorf("list the receipts of %s: %w", p.ref, err)
	}
	locks, shown, news := make([]decision.Lock, 0, len(list)), make(map[string]string, len(list)), false
	for _, r := range list {
		shown[r.Pod] = r.Text
		news = news || p.metas[r.Pod] == nil
		locks = append(locks, decision.Lock{
			Pod: r.Pod, UID: string(r.UID), Text: r.Text, Version: r.Version, Receipt: r.Receipt, Runs: receipt.NoID, Overdue: r.Overdue(p.world.Now),
		})
	}
	others, more, err := p.elsewhere(ctx, shown, version)
	if err != nil {
		return err
	}
	if news || more { // or the cache is behind; then the next pass lists again
		if err := p.lookOutside(ctx); err != nil {
			return err
		}
	}
	if err := p.stillOwned(ctx); err != nil {
		return err
	}
	p.world.Evidence = decision.Evidence{Locks: append(locks, others...), Asked: which.IDs, Owners: which.Former}
	return nil
}

// stillOwned checks whether the owner has been frozen since the pass began, and which of its pods have another owner now. Otherwise two leaders with caches of
// different moments could begin pods of one workload under two owners (test/proof/owners).
func (p *pass) stillOwned(ctx context.Context) error {
	if err := p.freeze(ctx); err != nil {
		return err
	}
	for i := range p.world.Pods {
		q := &p.world.Pods[i]
		q.Owned = q.Owned && p.owns(p.metas[q.Name])
	}
	return nil
}

// elsewhere returns the locks and running ids of the owner's pods that the list of its locks did not show: their receipts are for another owner, or were
// removed. news is true if the pass does not know one of them. shown are the receipts in the first list.
// The API server is asked, because the watches of pods and ReplicaSets have no order: the cache may show an adopter's new pods before the adopted ones. All of
// the owner's pods are listed, with any lock. With another leader, a pod may lock for another owner during the first list, and for this one again during the
// second: a list of locks for others would miss it.
func (p *pass) elsewhere(ctx context.Context, shown map[string]string, since string) (locks []decision.Lock, news bool, err error) {
	if p.owner.Selector == "" || p.ref.Is(kinds.StatefulSet) || p.ref.Is(kinds.Job) { // their pods never change owners while they have a slot
		return nil, false, nil
	}
	list := metaList(corev1.SchemeGroupVersion.WithKind(podKind))
	o := &metav1.ListOptions{FieldSelector: store.LivePods, ResourceVersion: since, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	if err := p.listLabelled(ctx, list, p.owner.Selector, &client.ListOptions{Raw: o}); err != nil {
		return nil, false, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(pod podMeta) bool {
		_, also := shown[pod.Name]
		lock := p.lockOf(&pod)
		return also || !lock.Receipt.Locked() && lock.Runs == receipt.NoID
	})
	if p.ref.Rolls() && slices.ContainsFunc(list.Items, func(pod podMeta) bool { return foreign(&pod, p.sets) }) {
		if err := p.allSets(ctx); err != nil {
			return nil, false, err
		}
	}
	for i := range list.Items {
		if pod := &list.Items[i]; p.owns(pod) || p.runsHere(pod) {
			locks = append(locks, p.lockOf(pod))
			news = news || !shows(p.metas[pod.Name], pod.Annotations[receipt.Key])
		}
	}
	return locks, news, nil
}

// lockOf returns what a pod locks, for any owner, and the id under which its program runs. If the identity names another pod, the program has not begun.
func (p *pass) lockOf(pod *podMeta) decision.Lock {
	lock := decision.Lock{Pod: pod.Name, UID: string(pod.UID), Text: pod.Annotations[receipt.Key], Version: pod.ResourceVersion, Runs: receipt.NoID}
	lock.Receipt, _ = receipt.Anywhere(pod) // an unreadable receipt locks
	var is identity.Identity
	if is.UnmarshalJSON([]byte(pod.Annotations[receipt.IdentityKey])) == nil && is.Pod == pod.Name && is.State == identity.StateAssigned {
		lock.Runs, lock.Number = is.ID, is.Number
	}
	if end := pod.DeletionTimestamp; end != nil {
		lock.Overdue = !end.After(p.world.Now)
	}
	return lock
}

// newest returns the newest resourceVersion of the pods of this pass and of its writes, or "" if they cannot be compared.
func (p *pass) newest() (version string) {
	for _, meta := range p.metas {
		if is := meta.ResourceVersion; version == "" {
			version = is
		} else if is != "" {
			order, err := resourceversion.CompareResourceVersion(version, is)
			if err != nil {
				return ""
			}
			if order < 0 {
				version = is
			}
		}
	}
	return version
}
