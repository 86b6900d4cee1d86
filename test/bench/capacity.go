package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	capacityTimeout = 20 * time.Minute
	// nameLength is how long the pods' names are.
	nameLength = 60
	// capacityHolders is how many of the pods really take their slots.
	capacityHolders = 5
	// nameTries is how often a Deployment is made until its pods' names have that length: it depends on a hash.
	nameTries = 30
)

// capacity measures how many slots fit into one Deployment, and what comes after that.
func capacity(ctx context.Context, env *suite.Suite, o options, out, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, capacityTimeout, fmt.Errorf("not done after %s", capacityTimeout))
	defer cancel()
	w, err := longNames(ctx, env, o.filler)
	if err != nil {
		return err
	}
	defer w.wire.close() // the Deployment goes with its control plane
	annotations, err := w.annotations(ctx)
	if err != nil {
		return err
	}
	fits := capacityOf(annotations)
	if _, err := fmt.Fprintf(progress, "%d pods with names of %d characters\n", fits, nameLength); err != nil {
		return err
	}
	if err := w.scale(ctx, fits); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(progress, "all are there; some claim"); err != nil {
		return err
	}
	holders, took, err := w.fill(ctx)
	defer func() {
		for _, i := range holders {
			abandon(ctx, i)
		}
	}()
	if err != nil {
		return err
	}
	full, err := w.annotations(ctx)
	if err != nil {
		return err
	}
	slots, err := assignment.ParseSlots(full[assignment.Key])
	if err != nil || len(slots) != fits {
		return errors.Join(err, fmt.Errorf("%d slots were given out, not %d", len(slots), fits))
	}
	waits, err := w.onePast(ctx, holders, full, fits)
	if err != nil {
		return err
	}
	limit, refusal, err := w.serverLimit(ctx, full)
	if err != nil {
		return err
	}
	rolls, err := w.rolls(ctx)
	if err != nil {
		return err
	}
	lines := [][]string{
		{"what", "figure"},
		{"slots with names of " + strconv.Itoa(nameLength) + " characters", strconv.Itoa(fits)},
		{"bytes of annotations then, of " + strconv.Itoa(assignment.AnnotationLimit), strconv.Itoa(assignment.Size(full))},
		{"seconds until the first " + strconv.Itoa(capacityHolders) + " pods held theirs", strconv.FormatFloat(took.Seconds(), 'f', 2, 64)},
		{"slots that the API server would take", strconv.Itoa(limit)},
		{"its answer to one more", refusal},
		{"a pod past the limit waits", waits},
		{"the holders", "keep their ids, and see the new count"},
		{"a rollout of the full Deployment", rolls},
	}
	if _, err := fmt.Fprintln(out, "Capacity"); err != nil {
		return err
	}
	for _, line := range lines[1:] {
		if _, err := fmt.Fprintf(out, "  %s: %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return o.save("capacity", lines)
}

// capacityOf returns how many slots with long names fit beside other annotations.
func capacityOf(others map[string]string) int {
	const more = assignment.AnnotationLimit / nameLength
	var tooLarge *assignment.TooLargeError
	if !errors.As(assignment.RoomOn(others).Check(longState(more), assignment.SizeLimit), &tooLarge) {
		return more
	}
	return tooLarge.Fits
}

func longState(n int) assignment.State {
	s := assignment.State{Slots: assignment.Slots{}}
	for id := range n {
		s.Slots[id] = strings.Repeat("x", nameLength)
	}
	return s
}

// longNames creates a Deployment without replicas whose pods' names will have the right length.
func longNames(ctx context.Context, env *suite.Suite, filler int) (*workload, error) {
	const random = 6 // "-" and five characters
	length := nameLength - random - len("-5d9f8c7b64")
	for try := range nameTries {
		name := strings.Repeat("w", length-1) + string(rune('a'+try%26))
		d, surge, none := idle(name, 0), intstr.FromInt32(1), intstr.FromInt32(0)
		if filler > 0 {
			d.Annotations = map[string]string{"bench.idalloc.dev/filler": strings.Repeat("x", filler)}
		}
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &none}
		w, err := newWorkload(ctx, env, d)
		if err != nil {
			return nil, err
		}
		sets, err := w.sets(ctx)
		if err != nil {
			return nil, err
		}
		if len(sets) == 1 && len(sets[0].Name)+random == nameLength {
			return w, nil
		}
		if err := w.remove(ctx); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no Deployment out of %d gave pods names of %d characters", nameTries, nameLength)
}

func (w *workload) sets(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	list, err := w.env.Client.AppsV1().ReplicaSets(w.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (w *workload) scale(ctx context.Context, n int) error {
	if err := w.Scale(ctx, "Deployment", w.deployment, int32(n)); err != nil { //nolint:gosec // a few thousand
		return err
	}
	return w.settle(ctx, n)
}

// fill lets some pods claim: the first that plans gives all of them a slot.
func (w *workload) fill(ctx context.Context) (holders []*idalloc.Instance, took time.Duration, err error) {
	begin := time.Now()
	for index := range capacityHolders {
		i, err := w.instance(ctx, w.pods[index].Name)
		if err != nil {
			return holders, 0, err
		}
		holders = append(holders, i)
	}
	for _, i := range holders {
		if _, err := i.Wait(ctx); err != nil {
			return holders, 0, err
		}
	}
	return holders, time.Since(begin), nil
}

func (w *workload) instance(ctx context.Context, pod string) (*idalloc.Instance, error) {
	config, err := w.connection(ctx)
	if err != nil {
		return nil, err
	}
	return idalloc.Start(ctx, idalloc.Options{PodName: pod, PodNamespace: w.Name, Config: config, Log: quiet()})
}

// onePast scales up by one and returns why the new pod waits. Nothing may be written, and the holders
// must keep what they have.
func (w *workload) onePast(ctx context.Context, holders []*idalloc.Instance, full map[string]string, fits int) (waits string, err error) {
	old := map[string]bool{}
	for _, pod := range w.pods {
		old[pod.Name] = true
	}
	if err := w.scale(ctx, fits+1); err != nil {
		return "", err
	}
	for _, pod := range w.pods {
		if old[pod.Name] {
			continue
		}
		i, err := w.instance(ctx, pod.Name)
		if err != nil {
			return "", err
		}
		holders = append(slices.Clip(holders), i)
	}
	last := holders[len(holders)-1]
	defer abandon(ctx, last)
	err = w.until(ctx, func(ctx context.Context) (bool, error) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := last.Wait(over) // which says what it waits for
		if !errors.Is(err, allocator.ErrNoSlot) {
			return false, fmt.Errorf("the pod past the limit does not wait: %w", err)
		}
		var room bool
		_, waits, room = strings.Cut(err.Error(), "waited for room on Deployment/"+w.deployment+": ")
		return room, nil
	})
	if err != nil {
		return "", err
	}
	now, err := w.annotations(ctx)
	if err != nil {
		return "", err
	}
	if !maps.Equal(now, full) {
		return "", errors.New("the Deployment's annotations changed")
	}
	for _, i := range holders[:len(holders)-1] {
		err := w.until(ctx, func(context.Context) (bool, error) {
			id := i.Current()
			if !id.Assigned() {
				return false, fmt.Errorf("%s lost its id", id.Pod)
			}
			return id.Count == fits+1, nil
		})
		if err != nil {
			return "", err
		}
	}
	return waits, nil
}

// serverLimit finds the largest assignment that the API server takes, by dry runs, and its answer to one
// slot more.
func (w *workload) serverLimit(ctx context.Context, full map[string]string) (most int, refusal string, err error) {
	low, high := 1, 2*assignment.AnnotationLimit/nameLength
	for high-low > 1 {
		middle := (low + high) / 2
		state := longState(middle)
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, assignment.Key, state.Slots.Encode())
		_, err := w.env.Client.AppsV1().Deployments(w.Name).Patch(ctx, w.deployment, types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			low = middle
		case apierrors.IsInvalid(err):
			high, refusal = middle, err.Error()
		default:
			return 0, "", err
		}
	}
	if refusal == "" {
		return 0, "", fmt.Errorf("the API server took %d slots beside %d annotations", low, len(full)-1)
	}
	return low, strings.TrimPrefix(refusal, fmt.Sprintf("Deployment.apps %q is invalid: ", w.deployment)), nil
}

// rolls begins a new revision of the full Deployment and says whether its ReplicaSet was made.
func (w *workload) rolls(ctx context.Context) (string, error) {
	_, err := w.env.Client.AppsV1().Deployments(w.Name).Patch(ctx, w.deployment, types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"bench.idalloc.dev/restarted":"yes"}}}}}`), metav1.PatchOptions{})
	if err != nil {
		return "", err
	}
	size := 0
	err = w.until(ctx, func(ctx context.Context) (bool, error) {
		sets, err := w.sets(ctx)
		if err != nil || len(sets) < 2 {
			return false, err
		}
		for _, set := range sets {
			size = max(size, assignment.Size(set.Annotations))
		}
		return true, nil
	})
	return fmt.Sprintf("goes on: a ReplicaSet's annotations take %d bytes", size), err
}
