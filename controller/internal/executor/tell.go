package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// again is the least time between two Events with one reason about one object.
	again = 5 * time.Minute
	// starts is how long a pod may take to become available, or Kubernetes to end an older one, before people are told that others wait for it.
	starts = time.Minute
)

// event leaves an Event. That one cannot be written is no reason to stop.
func (x *Executor) event(ctx context.Context, about metav1.OwnerReference, namespace, kind, reason, message string) {
	err := x.store.Tell(ctx, store.KubeEvent{About: about, Namespace: namespace, Reporter: x.name, Type: kind, Reason: reason, Message: message})
	if err != nil {
		// Log: an Event could not be written; the line has its text.
		// Do: nothing, unless it stays; then see whether the controller may create Events.
		x.log.Info("cannot write an Event", "reason", reason, "message", message, "error", err.Error())
	}
}

// seldom reports whether an Event with this reason about this object is due.
func (x *Executor) seldom(uid, reason string) bool {
	key := uid + " " + reason
	_, told := x.told.Get(key)
	if !told {
		x.told.Set(key, nil, again)
	}
	return !told
}

func (p *pass) event(ctx context.Context, about metav1.OwnerReference, kind, reason, message string) {
	p.Executor.event(ctx, about, p.ref.Namespace, kind, reason, message)
}

// tell leaves Events about what people must know.
func (p *pass) tell(ctx context.Context, d heart.Decision) {
	about, stuck := p.owner.About(), map[heart.Reason]int{}
	p.tellIgnored(ctx)
	for _, w := range d.Waits {
		if left := starts - p.world.Now.Sub(w.Since); (w.Reason == heart.ReasonUnavailable || w.Reason == heart.ReasonKept) && left > 0 {
			p.sooner(left)
			continue
		}
		stuck[w.Reason]++
		if meta := p.metas[w.Pod]; w.Reason == heart.ReasonNoGate && meta != nil && p.seldom(string(meta.UID), "GateMissing") {
			// Event: a pod has the label and no gate, so its program runs without an id.
			// Do: add the gate to the pod template, or install the admission policies.
			p.event(ctx, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: w.Pod, UID: meta.UID}, store.EventWarning, "GateMissing",
				fmt.Sprintf("the pod has the label %s and no scheduling gate %s: it runs without an id, and gets none", store.AssignLabel, store.Gate))
		}
	}
	for reason, what := range map[heart.Reason]string{
		heart.ReasonPaused: "the Deployment is paused: resume it",
		heart.ReasonNever: "annotation " + assignment.EvictKey + " permits no removal, and the strategy has maxUnavailable 0: set maxUnavailable to 1 or more, or remove pods of the old " +
			"revision yourself",
		heart.ReasonKept:        "no pod of an older revision hands its id over, and the strategy has maxUnavailable 0: " + allocator.WayOut,
		heart.ReasonUnavailable: "a pod of the current revision has an id and is not available: see why, and repair the revision or undo it",
	} {
		if n := stuck[reason]; n > 0 && p.seldom(string(about.UID), string(reason)) {
			// Event: pods of the current revision wait for ids, and no old pod makes room for them.
			// Do: what the message says.
			p.event(ctx, about, store.EventWarning, "RolloutWaits", fmt.Sprintf("%d pods of the current revision wait for the ids of older ones; %s", n, what))
		}
	}
	for _, c := range d.Plan.Foreign {
		if len(d.Waits) > 0 && p.seldom(string(about.UID), "SlotLockedByForeignPod "+c.Pod) {
			p.event(ctx, about, store.EventWarning, "SlotLockedByForeignPod", fmt.Sprintf(
				"no pod gets id %d, because pod %s locks it, which is not of the workload: see who relabelled or made it, and delete it when nothing acts in it any more", c.ID, c.Pod))
		}
	}
	if large := d.Plan.TooLarge; large != nil && p.seldom(string(about.UID), "AssignmentTooLarge") {
		p.event(ctx, about, store.EventWarning, "AssignmentTooLarge", large.Error()+": pods without an id wait, those that have one keep it")
	}
}

// tellIgnored leaves an Event about the user's annotations of the owner that make no sense.
func (p *pass) tellIgnored(ctx context.Context) {
	problems := slices.Clone(p.owner.Wish.Problems)
	if _, problem := assignment.EvictLimit(p.owner.Annotations, p.owner.Count); problem != nil {
		problems = append(problems, *problem)
	}
	parts := make([]string, 0, len(problems))
	for _, problem := range problems {
		parts = append(parts, problem.Error()+": it counts as absent")
	}
	if text := strings.Join(parts, "; "); text != "" && p.seldom(string(p.owner.UID), "AnnotationIgnored "+text) {
		p.event(ctx, p.owner.About(), store.EventWarning, "AnnotationIgnored", text)
	}
}

// tellForbidden leaves an Event about a right that the controller lacks. It works on for others: the right may be missing in one namespace, or for a moment.
func (x *Executor) tellForbidden(ctx context.Context, ref store.Ref, t *temper, err error) {
	var missing *store.ForbiddenError
	now := x.store.Clock.Now()
	switch {
	case !errors.As(err, &missing):
		t.forbidden = time.Time{}
		return
	case t.forbidden.IsZero():
		t.forbidden = now
	}
	meta, gone := x.ownerMeta(ctx, ref)
	if gone != nil || now.Sub(t.forbidden) < patience || !x.seldom(string(meta.UID), "ControllerForbidden") {
		return
	}
	about := metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: meta.UID}
	// Event: RBAC refuses a request of the controller. The workload's pods keep what they have, and others wait.
	// Do: run `kubectl idalloc check`, and install the chart again.
	x.event(ctx, about, ref.Namespace, store.EventWarning, "ControllerForbidden", missing.Error())
}
