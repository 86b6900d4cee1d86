package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	// again is the shortest time between two Events with the same reason about the same object.
	again = 5 * time.Minute
	// starts is how long a new pod may take to become available, or Kubernetes to end an old one, before an Event reports that others wait for it.
	starts = time.Minute
	// mostTold is how many pods of an owner get Events in one pass.
	mostTold = 8
)

// tell writes Events about what people must know.
func (p *pass) tell(ctx context.Context, d decision.Decision) {
	p.tellIgnored(ctx)
	p.tellRefused(ctx)
	p.tellTooLarge(ctx)
	p.tellWaits(ctx, d.Waits)
	p.tellFrozen(ctx)
	p.tellCount(ctx, d.Behind)
	p.tellRests(ctx, d.Rests)
	for _, c := range d.Plan.Foreign {
		if len(d.Waits) > 0 {
			p.warn(ctx, p.owner.About(), "SlotLockedByForeignPod", c.Pod, fmt.Sprintf(
				"pod %s locks id %d and is not a pod of the workload, so no pod gets that id: see who relabelled or made it, and delete it when nothing works in it any more", c.Pod, c.ID))
		}
	}
	if large := d.Plan.TooLarge; large != nil {
		p.warn(ctx, p.owner.About(), "AssignmentTooLarge", "", large.Error()+": pods without an id wait, those that have one keep it")
	}
}

// tellWaits writes Events about pods that wait longer than they should.
func (p *pass) tellWaits(ctx context.Context, waits []decision.Wait) {
	stuck, gated := map[decision.Reason]int{}, 0
	for _, w := range waits {
		if left := starts - p.world.Now.Sub(w.Since); (w.Reason.Passes() || w.Reason == decision.ReasonGates) && left > 0 {
			p.requeue(left)
			continue
		}
		if w.Reason != decision.ReasonSlots || p.behindOlder(p.pod(w.Pod)) { // other pods without a slot wait as they should
			stuck[w.Reason]++
		}
		switch meta := p.metas[w.Pod]; {
		case meta == nil:
		case w.Reason == decision.ReasonNoGate:
			// Event: on a pod: it has the label but no gate, so its program runs without an id.
			// Do: add the gate to the pod template, or install the admission policies.
			p.warn(ctx, aboutPod(meta), "GateMissing", "",
				fmt.Sprintf("the pod has the label %s and no scheduling gate %s: it runs without an id, and gets none", receipt.AssignLabel, receipt.Gate))
		case w.Reason == decision.ReasonContract:
			// Event: on a pod: it needs a later version of the controller. The controller was downgraded, or its policies were upgraded first.
			// Do: upgrade the controller, or delete the pod if its template no longer asks for that version.
			p.warn(ctx, aboutPod(meta), "ContractUnknown", "",
				fmt.Sprintf("the pod has annotation %s: %.20s, and this idalloc-controller keeps contracts up to %d: upgrade it", receipt.ContractKey, meta.Annotations[receipt.ContractKey], receipt.Contract))
		case w.Reason == decision.ReasonGates && meta.Annotations[tooLargeKey] == "": // tellTooLarge reports the others
			if gated == mostTold {
				p.requeue(time.Second)
				continue
			}
			// Event: on a pod: it has waited for a minute behind scheduling gates of other programs.
			// Do: see who removes them.
			if p.warn(ctx, aboutPod(meta), "OtherGates", "", "the pod gets an id when idalloc's scheduling gate is its last one: see who removes the others") {
				gated++
			}
		case w.Reason == decision.ReasonNumber:
			_, problem := assignment.FirstNumber(meta.Annotations)
			// Event: on a pod: it asks for an invalid machine number, so it gets no id.
			// Do: correct or remove the annotation.
			p.warn(ctx, aboutPod(meta), "NumberInvalid", "", fmt.Sprintf("the pod gets no id, because %s: correct or remove the annotation in the pod template", problem.Error()))
		}
	}
	for reason, n := range stuck {
		if what := p.whatHolds(reason); what != "" {
			// Event: pods of the current revision wait for ids, and no old pod makes room for them.
			// Do: what the message says.
			p.warn(ctx, p.owner.About(), "RolloutWaits", string(reason), fmt.Sprintf("%d pods of the current revision wait for the ids of older ones; %s", n, what))
		}
	}
}

// whatHolds explains what blocks a rolling update and what to do. It returns "" if the reason is not about updates.
func (p *pass) whatHolds(reason decision.Reason) string {
	switch {
	case reason == decision.ReasonPaused:
		return "the Deployment is paused: resume it"
	case reason == decision.ReasonNever:
		return "annotation " + assignment.EvictKey + " permits no removal, and the strategy has maxUnavailable 0: set maxUnavailable to 1 or more, or remove pods of the old " +
			"revision yourself"
	case reason == decision.ReasonKept:
		return "no pod of an older revision hands its id over, and the strategy has maxUnavailable 0: " + allocator.WayOut
	case reason == decision.ReasonUnavailable:
		return "a pod of the current revision has an id and is not available: see why, and repair the revision or undo it"
	case reason == decision.ReasonRollout:
		return "older pods make room as annotation " + assignment.EvictKey + " and the disruption budgets permit" + p.lost()
	case reason == decision.ReasonSlots && p.ref.Resource != "":
		return "live pods have all ids, and the controller removes no pods of a " + p.ref.Kind + ": set its maxUnavailable to 1 or more, or remove older pods yourself"
	case reason == decision.ReasonSlots:
		return "live pods have all ids" + p.lost()
	}
	return ""
}

// tellRefused writes Events with the API server's message about pods that cannot be written, and about the map if it cannot be written.
func (p *pass) tellRefused(ctx context.Context) {
	count, told, example, who := 0, 0, "", ""
	for i := range p.world.Pods {
		meta := p.metas[p.world.Pods[i].Name]
		err := p.memory.refuses(meta.UID)
		if !refused(err) && !errors.Is(err, request.ErrConflict) && !apierrors.IsInternalError(err) { // missing permissions and outages have other Events
			continue
		}
		refuses := "the API server refuses what idalloc-controller writes"
		if errors.Is(err, receipt.ErrNoToken) {
			refuses = "idalloc-controller cannot write a lock"
		}
		if count++; count == 1 {
			who, example = refuses, fmt.Sprintf("pod %s: %s", meta.Name, inWords(err))
		}
		// Event: on a pod, and on its workload: admission refuses what the controller writes. The pod gets no id, or no new count.
		// Do: exempt idalloc's keys, or delete the pod. If the message is about a resourceVersion, see it.
		if told < mostTold && p.warn(ctx, aboutPod(meta), "WriteRefused", "", refuses+" on the pod: "+inWords(err)) {
			told++
		}
	}
	switch err := p.memory.err; {
	case refused(err):
		p.warn(ctx, p.owner.About(), "WriteRefused", "", "the API server refuses the map of ids, so no pod gets a new one: "+inWords(err))
	case count > 0:
		p.warn(ctx, p.owner.About(), "WriteRefused", "", fmt.Sprintf("%s on %d pods, such as %s", who, count, example))
	}
}

// inWords returns the API server's message, if the error has one.
func inWords(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}

// behindOlder reports whether a waiting pod is of a newer revision than pods that have ids. For kinds of --kind it can only tell that their ReplicaSets differ.
func (p *pass) behindOlder(waiter *decision.Pod) bool {
	switch {
	case waiter == nil:
		return false
	case p.ref.Rolls():
		return waiter.Controller == p.world.Owner.Revision
	}
	return p.ref.Resource != "" && slices.ContainsFunc(p.world.Pods, func(q decision.Pod) bool {
		return q.Owned && q.Receipt.Locked() && q.Controller != waiter.Controller
	})
}

// tellUnlocked writes an Event if another program removed or changed the lock or the id of a running pod.
func (p *pass) tellUnlocked(ctx context.Context, t decision.Take) {
	if !t.Begun {
		return
	}
	// Event: on a pod whose program runs: another program removed or changed its receipt, labels or id. The controller writes them again. If another pod got the
	// id meanwhile, the one that began later is deleted.
	// Do: find who changed them in the audit log, and install the admission policies.
	p.warn(ctx, aboutPod(p.meta(t.Pod)), "LockChanged", "", fmt.Sprintf(
		"another program removed or changed the lock or the annotations of id %d, under which the pod runs: they are written again; install the admission policies, which forbid that", t.ID))
}

// lost names the pods that block a rolling update because their node may be down, and explains what to do.
func (p *pass) lost() string {
	var names []string
	for _, q := range p.world.Pods {
		if q.Lost(p.world.Now) && q.Receipt.Locked() {
			names = append(names, q.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names[:min(len(names), 3)], ", ") + " outlived the grace period, keeps its id and may use a disruption budget up: bring its node back, or taint " +
		"it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute if it will not come back"
}

// tellFrozen writes an Event about an owner that has been frozen for longer than Kubernetes takes to adopt a ReplicaSet.
func (p *pass) tellFrozen(ctx context.Context) {
	if p.world.Owner.Frozen == "" {
		return
	}
	if left := patience - p.world.Now.Sub(p.memory.frozen); left > 0 {
		p.requeue(left)
		return
	}
	// Event: a Deployment was deleted without its ReplicaSets, and now they have several owners. No pod gets an id, and none is removed, until one owner has
	// them all.
	// Do: make the Deployment again. Or delete the ReplicaSets that you do not need, and annotate the one that stays as the message says.
	p.warn(ctx, p.owner.About(), "WorkloadFrozen", "", fmt.Sprintf(
		"no pod gets an id, and none is removed, until ReplicaSet %s has the same owner: make the Deployment again, or delete what you do not need; "+
			"a ReplicaSet that is to stay alone needs annotation %s with its name", p.world.Owner.Frozen, assignment.AdoptKey))
}

// tellTooLarge writes Events about pods with an annotation that the cache had to cut.
func (p *pass) tellTooLarge(ctx context.Context) {
	for _, meta := range p.metas {
		if meta == nil || meta.Annotations[tooLargeKey] == "" {
			continue
		}
		// Event: on a pod: one of idalloc's annotations is longer than any that idalloc writes, so the pod gets no id. What it locks stays locked.
		// Do: see who wrote it, and delete the pod.
		p.warn(ctx, aboutPod(meta), "PodTooLarge", "",
			fmt.Sprintf("the pod gets no id: %s, which idalloc did not write: see who did, and delete the pod", meta.Annotations[tooLargeKey]))
	}
}

// tellIgnored writes an Event about invalid annotations that the user set on the owner.
func (p *pass) tellIgnored(ctx context.Context) {
	problems := slices.Concat(p.owner.Wish.Problems, assignment.UserProblems(p.owner.Annotations, p.owner.Count))
	parts := make([]string, 0, len(problems))
	for _, problem := range problems {
		parts = append(parts, problem.Error()+": the value is invalid and is ignored")
	}
	if text := strings.Join(parts, "; "); text != "" {
		p.warn(ctx, p.owner.About(), "AnnotationIgnored", text, text)
	}
}

// tellRests writes Events about ids that rest while pods wait for them. "explain" and "verify" read the time from the message.
func (p *pass) tellRests(ctx context.Context, rests []decision.Rest) {
	told := 0
	for _, r := range rests {
		message := fmt.Sprintf(assignment.RestsMessage, r.ID, r.Until.UTC().Format(time.RFC3339), assignment.ReuseKey)
		switch {
		case told == mostTold:
			p.requeue(time.Second)
			return
		case p.seldom(string(p.owner.UID), "IDRests "+message):
			told++
			// Event: Normal: a pod waits for an id whose last pod ended a short time ago.
			// Do: nothing, or shorten the annotation that the message names.
			p.event(ctx, p.owner.About(), p.ref.Namespace, kubeevent.Normal, "IDRests", message, message)
		}
	}
}

// tellForbidden writes an Event about a permission that the controller lacks. The controller continues for other owners: the permission may be missing in one
// namespace only, or only for a moment.
func (x *Reconciler) tellForbidden(ctx context.Context, ref kinds.Ref, m *memory, err error) {
	var missing *request.ForbiddenError
	now := x.store.Clock.Now()
	if since(&m.forbidden, errors.As(err, &missing), now); missing == nil {
		return
	}
	meta, gone := x.ownerMeta(ctx, ref)
	if gone != nil || now.Sub(m.forbidden) < patience || !x.seldom(string(meta.UID), "ControllerForbidden") {
		return
	}
	about := metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: meta.UID}
	// Event: RBAC refuses a request of the controller. The workload's pods keep what they have, and others wait.
	// Do: run `kubectl idalloc check`, and install the chart again.
	x.event(ctx, about, ref.Namespace, kubeevent.Warning, "ControllerForbidden", missing.Error())
}
