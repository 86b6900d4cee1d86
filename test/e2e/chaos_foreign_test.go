//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/overlap"
)

// late is for how long a write that got no answer may still arrive: the API server may be suspended.
const late = 30 * time.Second

// foreignFaults change what idalloc wrote.
func foreignFaults() []fault {
	return []fault{
		{kind: "annotations wiped", weight: 2, do: foreign(tamper(wiped))},
		{kind: "annotations rolled back", weight: 2, do: foreign(tamper((*victim).rolledBack))},
		{kind: "assignment swapped", weight: 2, do: foreign(tamper(swapped))},
		{kind: "assignment damaged", weight: 2, do: foreign(tamper(damaged))},
		{kind: "receipt removed", weight: 3, do: spoilReceipt(removed)},
		{kind: "receipt damaged", weight: 2, do: spoilReceipt(unreadable)},
	}
}

// foreign makes one write to a Deployment that is not idalloc's. While a pod does not know yet that its
// receipt is spoilt there is none: if somebody takes both at once from a pod that hears of neither, its id may go to
// another pod before it has stopped (docs/protocol.md, A3).
func foreign(do action) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		release, err := d.on.foreign.take(ctx)
		if err != nil {
			return "", nil, err
		}
		defer release()
		what, undo, err := do(ctx, d)
		d.on.note(err)
		return what, undo, err
	}
}

// note remembers a foreign write that may still arrive.
func (v *victim) note(err error) {
	if unanswered(err) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.unsure = time.Now().Add(late)
	}
}

// unanswered: the write may be accepted later.
func unanswered(err error) bool {
	if err == nil || errors.Is(err, errNothing) || errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	var said apierrors.APIStatus
	if errors.As(err, &said) {
		return said.Status().Code >= 500 //nolint:mnd // the server's own fault: it may have written
	}
	return !strings.Contains(err.Error(), " was refused ") && !strings.Contains(err.Error(), noHistory) // kubectl's words
}

// certain fails while foreign writes may still arrive, or are not repaired yet.
func (v *victim) certain(ctx context.Context) error {
	v.mu.Lock()
	unsure := v.unsure
	v.mu.Unlock()
	if time.Now().Before(unsure) {
		return fmt.Errorf("%w: a foreign write may still arrive", errNothing)
	}
	owner, err := v.owner(ctx)
	if err != nil {
		return err
	}
	pods, err := v.pods(ctx)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if label := p.Labels[idLabel]; label != "" && strconv.Itoa(slotOf(owner, p.Name)) != label {
			return fmt.Errorf("%w: the assignment is not repaired yet", errNothing)
		}
	}
	return nil
}

// slotOf returns the slot that the assignment gives to a pod, or overlap.None.
func slotOf(owner store.Owner, pod string) int {
	if id, named := owner.Record.State.Slots.Of(pod); named {
		return id
	}
	return overlap.None
}

// tamper writes foreign annotations onto the Deployment; edit returns those to set, null being removed.
func tamper(edit func(v *victim, now map[string]string) map[string]any) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		deploy, err := d.on.deployment(ctx)
		if err != nil {
			return "", nil, err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": edit(d.on, deploy.Annotations)}})
		if err != nil {
			return "", nil, err
		}
		_, err = client.AppsV1().Deployments(d.on.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "chaos"})
		return "", nil, err
	}
}

func wiped(*victim, map[string]string) map[string]any {
	edit := map[string]any{}
	for _, key := range assignment.Keys() {
		edit[key] = nil
	}
	return edit
}

// rolledBack brings back what stood there some time ago.
func (v *victim) rolledBack(now map[string]string) map[string]any {
	v.mu.Lock()
	defer v.mu.Unlock()
	edit := wiped(v, now)
	for key := range edit {
		if value, was := v.old[key]; was {
			edit[key] = value
		}
	}
	v.old = now
	return edit
}

// swapped gives every id to the holder of the next one.
func swapped(_ *victim, now map[string]string) map[string]any {
	slots, err := assignment.ParseSlots(now[assignment.Key])
	if err != nil || len(slots) == 0 {
		return damaged(nil, nil)
	}
	ids, other := slots.IDs(), assignment.Slots{}
	for i, id := range ids {
		other[id] = slots[ids[(i+1)%len(ids)]]
	}
	return map[string]any{assignment.Key: other.Encode()}
}

func damaged(*victim, map[string]string) map[string]any {
	return map[string]any{assignment.Key: `{"0":"a","0":`}
}

// eventually asks until the answer is yes. Errors are asked over: other faults go on.
func eventually(ctx context.Context, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, patience/10) //nolint:mnd // of several tries
		defer cancel()
		ok, err := done(ctx)
		last = err
		return ok && err == nil, nil
	})
	return errors.Join(err, last)
}

// Foreign values of a receipt; nil removes it.
var (
	removed    *string        //nolint:gochecknoglobals // a constant
	unreadable = new(`{"uid`) //nolint:gochecknoglobals // a constant
)

// spoilReceipt takes the receipt from a pod that holds an id. The fault ends when the pod knows of it.
func spoilReceipt(value *string) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		release, err := d.on.foreign.take(ctx)
		if err != nil {
			return "", nil, err
		}
		p, err := d.on.spoil(ctx, d.pick, value)
		if err != nil && !unanswered(err) || p.Name == "" {
			release()
			return "", nil, err
		}
		since := overlap.Now()
		heard := func(ctx context.Context) error {
			// Without that, no foreign write is made any more.
			if err := eventually(ctx, func(ctx context.Context) (bool, error) { return d.on.heard(ctx, p, value, since) }); err != nil {
				return fmt.Errorf("waiting until %s knows that its receipt was spoilt: %w", p.Name, err)
			}
			release()
			return nil
		}
		return p.Name, heard, nil
	}
}

// spoil returns the pod; an unanswered write may have spoilt its receipt, too.
func (v *victim) spoil(ctx context.Context, pick int, value *string) (corev1.Pod, error) {
	if err := v.certain(ctx); err != nil {
		return corev1.Pod{}, err
	}
	p, err := v.pick(ctx, pick, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && p.Labels[idLabel] != "" && p.Annotations[receipt.Key] != ""
	})
	if err != nil {
		return corev1.Pod{}, err
	}
	const path = "/metadata/annotations/idalloc.dev~1receipt"
	edit := map[string]any{"op": "remove", "path": path}
	if value != nil {
		edit = map[string]any{"op": "replace", "path": path, "value": *value}
	}
	patch, err := json.Marshal([]any{
		map[string]any{"op": "test", "path": "/metadata/uid", "value": p.UID},
		map[string]any{"op": "test", "path": path, "value": p.Annotations[receipt.Key]},
		edit,
	})
	if err != nil {
		return corev1.Pod{}, err
	}
	_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "chaos"})
	return p, err
}

// heard: the pod wrote another receipt, works under no id, or is gone.
func (v *victim) heard(ctx context.Context, spoilt corev1.Pod, value *string, since int64) (bool, error) {
	last, err := v.lastSample(spoilt.Name)
	if err == nil && last.ID == overlap.None && last.Before > since {
		return true, nil
	}
	p, err := client.CoreV1().Pods(spoilt.Namespace).Get(ctx, spoilt.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	now, is := p.Annotations[receipt.Key]
	rewritten := is && (value == nil || now != *value)
	return rewritten || p.Status.Phase != corev1.PodRunning, nil
}
