package reconciler

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// look reads the owner's pods from the cache, and from the API server if the cache may lack some.
func (p *pass) look(ctx context.Context) error {
	if err := p.revisions(ctx); err != nil {
		return err
	}
	if err := p.seeCached(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(p.world.Pods, func(q decision.Pod) bool { return q.Gated || q.Agent && !q.Receipt.Locked() }) { // otherwise nothing begins
		if err := p.freeze(ctx); err != nil {
			return err
		}
		if err := p.seeCached(ctx); err != nil { // p.owns must use the same list as freeze
			return err
		}
	}
	p.memory.recall(p.metas)
	if unknown := p.unknown(); (len(p.world.Pods) == 0 || !p.unlabelled()) && !unknown && !p.memory.outside.found {
		p.recall()
		return nil
	}
	return p.lookOutside(ctx)
}

// seeCached makes the world from the pods in the cache.
func (p *pass) seeCached(ctx context.Context) error {
	var lists []*corev1.PodList
	for _, value := range append(slices.Collect(maps.Keys(p.sets)), string(p.owner.UID), lockValue(p.ref.String())) {
		list := &corev1.PodList{}
		if err := p.listCached(ctx, list, p.ref.Namespace, value); err != nil {
			return err
		}
		lists = append(lists, list)
	}
	p.see(lists...)
	return nil
}

// lookOutside reads the owner's pods from the API server, and records whether the cache lacks some that count.
func (p *pass) lookOutside(ctx context.Context) error {
	cached := p.metas
	if err := p.list(ctx); err != nil {
		return err
	}
	p.memory.outside.listed, p.world.Unlisted = true, false
	p.memory.outside.found = slices.ContainsFunc(p.world.Pods, func(q decision.Pod) bool {
		return (q.Receipt.State != receipt.None || q.Assigned && q.ID != "") && !shows(cached[q.Name], q.Text)
	})
	return nil
}

// unlabelled reports whether the pods of the current revision run idalloc themselves: its ReplicaSet lacks the label.
func (p *pass) unlabelled() bool {
	return p.ref.Rolls() && p.current != "" && !p.sets[p.current]
}

// unknown reports whether the owner's annotations name a pod that the cache does not have and never had. Either it was deleted, or it runs idalloc itself. If
// the cache had it before, it was deleted, and a rolling update needs no list for such pods. A StatefulSet may have made another pod of that name, without the
// label.
func (p *pass) unknown() bool {
	seen, unknown, state := make(map[string]bool, len(p.metas)), false, p.owner.Record.State
	for name := range p.metas {
		seen[name] = p.ref.Rolls()
	}
	for _, names := range []assignment.Slots{state.Slots, state.Handover} {
		for _, name := range names {
			seen[name] = seen[name] || p.memory.outside.cached[name]
			unknown = unknown || p.metas[name] == nil && !seen[name]
		}
	}
	p.memory.outside.cached = seen
	return unknown
}

// list reads all pods of the owner from the API server.
func (p *pass) list(ctx context.Context) error {
	var lists []*corev1.PodList
	unknown := false
	for _, selector := range census.Selectors(p.owner) {
		list := &corev1.PodList{}
		if err := p.listLabelled(ctx, list, cmp.Or(selector, receipt.AssignLabel)); err != nil { // the scale subresource may have no selector
			return err
		}
		lists = append(lists, list)
		unknown = unknown || slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return foreign(&pod, p.sets) })
	}
	// The cache has no ReplicaSets of pods that run idalloc themselves. Without these, such pods would have no owner, and none would be asked for its slot.
	if p.ref.Rolls() && unknown {
		if err := p.allSets(ctx); err != nil {
			return err
		}
	}
	released := &corev1.PodList{}
	if err := p.listCached(ctx, released, p.ref.Namespace, lockValue(p.ref.String())); err != nil {
		return err
	}
	// No selector finds a running pod that lost all its labels. Without it, its slot would be given away here and come back in each pass that uses the cache.
	released.Items = slices.DeleteFunc(slices.Clone(released.Items), func(pod corev1.Pod) bool { return p.owns(&pod) })
	p.see(append(lists, released)...)
	p.recall() // once for all pods: without those outside the cache, ids that divide partitions would seem to come and go
	return nil
}

// see makes the world from the pods of these lists. If several lists contain a pod, the first one counts.
func (p *pass) see(lists ...*corev1.PodList) {
	p.metas = map[string]*podMeta{}
	o := p.ownerOf()
	if o.Revision = p.current; !p.ref.Rolls() {
		o.Revision = string(p.owner.UID)
	}
	p.world = decision.World{Owner: o, Now: p.store.Clock.Now(), Keeps: p.world.Keeps, Unlisted: !p.memory.outside.listed}
	settle, _ := assignment.SettleAfter(p.owner.Annotations)
	p.world.SettledAt = p.memory.counted.settles(o.Count, settle, p.world.Now)
	for _, list := range lists {
		for i := range list.Items {
			p.seeOne(&list.Items[i])
		}
	}
	slices.SortFunc(p.world.Pods, func(a, b decision.Pod) int { return strings.Compare(a.Name, b.Name) })
	p.memory.counted.bound(p.world.Pods, settle, p.world.Now)
	p.world.Rests = p.memory.failing.Left(p.world.Now) > 0
	p.memory.ends.See(p.world.Pods, p.world.Now)
	p.world.Ends = p.memory.ends
}

func (p *pass) seeOne(pod *corev1.Pod) {
	if p.metas[pod.Name] != nil {
		return
	}
	if census.Finished(string(pod.Status.Phase)) {
		p.metas[pod.Name] = &podMeta{} // known to be dead
		return
	}
	if q := p.podOf(pod); q.Owned || q.Receipt.Locked() || p.runsHere(pod) {
		q.Refused = p.memory.refuses(pod.UID) != nil
		p.metas[pod.Name] = &podMeta{ObjectMeta: pod.ObjectMeta}
		p.world.Pods = append(p.world.Pods, q)
	}
}

// ownerOf returns the owner in the form that decisions need.
func (p *pass) ownerOf() decision.Owner {
	o := p.owner
	turns, _ := assignment.CountTurns(o.Annotations, o.Count)
	reuse, _ := assignment.ReuseAfter(o.Annotations)
	return decision.Owner{
		Owner: o.Owner(), Namespace: o.Namespace, Count: o.Count, State: o.Record.State, Room: o.Room(), Revision: p.world.Owner.Revision,
		Replaces: o.Rolls(), Blocks: o.Rollout.Blocks(), MaxUnavailable: o.Rollout.MaxUnavailable, Paused: o.Rollout.Paused,
		Limit: limit(o), Turns: turns, ReuseAfter: reuse, Evicts: evicts(o), Wish: o.Wish, RollsNow: o.RollsNow, Frozen: p.world.Owner.Frozen,
	}
}

// evicts reports whether the controller may remove pods of the owner. A Job's pod would count as failed, and it is not known how other kinds react.
func evicts(o store.Owner) bool { return !o.Is(kinds.Job) && o.Resource == "" }

// limit returns how many ids may be without an available pod because of removals.
func limit(o store.Owner) int {
	if !evicts(o) {
		return 0
	}
	n, _ := assignment.EvictLimit(o.Annotations, o.Count) // tellIgnored reports an invalid value
	return n
}

// podOf returns the pod in the form that decisions need.
func (p *pass) podOf(pod *corev1.Pod) decision.Pod {
	q := decision.Pod{
		Assigned: pod.Labels[receipt.AssignLabel] == receipt.ByController, Agent: pod.Labels[receipt.AssignLabel] == receipt.ByAgent, Placed: pod.Spec.NodeName != "",
	}
	q.Pod, _ = census.PodOf(p.owner, pod, p.owns(pod)) // an unreadable receipt locks
	if q.Former.State == receipt.Locks {
		q.Pod = q.Moved()
	}
	q.Newer = receipt.Newer(pod.Annotations)
	q.ReadsStartCount = readsStartCount(pod)
	_, q.OtherGates = pod.Annotations[tooLargeKey] // the cut annotation is not known, so the pod stays behind its gate
	for _, gate := range pod.Spec.SchedulingGates {
		q.Gated, q.OtherGates = q.Gated || gate.Name == receipt.Gate, q.OtherGates || gate.Name != receipt.Gate
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			// Without minReadySeconds a Ready pod is available, and no clock is used: a wrong clock would make it unavailable for hours.
			if q.Ready = true; p.owner.Rollout.MinReady > 0 {
				q.AvailableAt = c.LastTransitionTime.Add(p.owner.Rollout.MinReady)
			}
		}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == assignment.CountWatcher {
			q.Watcher = short(c.ContainerID)
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 && q.Watcher != "" {
		q.Program = short(pod.Status.ContainerStatuses[0].ContainerID)
	}
	q.Older = p.owner.Template != "" && pod.Labels[kinds.RevisionLabel] != p.owner.Template && q.Ordinal >= p.owner.Partition
	p.says(&q, pod)
	for _, from := range []string{former(q.Identity), q.Receipt.Owner} {
		if from != "" && from != p.ref.String() && !slices.Contains(p.world.Former, from) {
			p.world.Former = append(p.world.Former, from)
		}
	}
	return q
}

// short returns enough of a container's id to tell it from earlier containers of the pod.
func short(id string) string {
	_, id, _ = strings.Cut(id, "://")
	return id[:min(len(id), 12)]
}

// says copies what the pod's metadata say to q. The receipt in q must be set.
func (p *pass) says(q *decision.Pod, pod metav1.Object) {
	on, is, r := pod.GetLabels(), pod.GetAnnotations(), q.Receipt
	q.Text, q.Version = is[receipt.Key], pod.GetResourceVersion()
	q.Published = decision.Published{
		ID: is[receipt.IDKey], Count: is[receipt.CountKey], StartCount: is[receipt.StartCountKey], Turn: is[receipt.TurnKey], Number: is[receipt.NumberKey], Identity: is[receipt.IdentityKey],
	}
	q.OnCount = is[assignment.OnCountKey]
	first, problem := assignment.FirstNumber(is)
	q.FirstNumber, q.BadNumber = first, problem != nil // tellWaits reports it
	q.ReadsStartCount = q.ReadsStartCount || q.OnCount == assignment.OnCountRestart || q.OnCount == assignment.OnCountReplace
	q.Proposal, q.Told = receipt.ProposalOf(pod)
	q.Under = p.under(q, r)
	q.Hidden = r.State == receipt.Locks &&
		(on[receipt.IDLabel] != strconv.Itoa(r.Share.ID) || on[receipt.OwnerLabel] != assignment.OwnerLabelValue(r.Owner))
}

// under returns the owner that the pod's receipt names. If the pod has no receipt, it returns the owner in its identity.
func (p *pass) under(q *decision.Pod, r receipt.Receipt) identity.Owner {
	var is identity.Identity
	known := q.Identity != "" && is.UnmarshalJSON([]byte(q.Identity)) == nil && is.Pod == q.Name
	switch {
	case r.State != receipt.Locks && known && !q.Gated, r.State == receipt.Locks && known && is.Owner.String() == r.Owner:
		return is.Owner
	case r.State != receipt.Locks || r.Owner == p.ref.String() || p.Reconciler == nil:
		return identity.Owner{}
	}
	ref, _ := p.named(r.Owner, p.ref.Namespace)
	return ref.Owner()
}
