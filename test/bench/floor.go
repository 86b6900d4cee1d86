package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// floor is the lower bound of a safe claim: all slots were proposed before, and each pod does only
// what safety asks of it, with the clients that idalloc has: it reads the owner, writes its receipt
// and lists the receipts for its slot.
type floor struct{}

func (floor) name() string { return "floor" }

func (floor) prepare(ctx context.Context, w *workload) error {
	s, err := store.New(w.env.ControlPlane.Config(), clock.RealClock{})
	if err != nil {
		return err
	}
	from, err := s.Get(ctx, w.ref())
	if err != nil {
		return err
	}
	state := assignment.State{Slots: assignment.Slots{}}
	for id := range w.pods {
		state.Slots[id] = w.pods[id].Name
	}
	_, err = s.Propose(ctx, from, state)
	return err
}

func (floor) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	s, err := store.New(c.config, clock.RealClock{})
	if err != nil {
		return 0, nil, err
	}
	id, err = named(ctx, s, c)
	if err != nil {
		return 0, nil, err
	}
	lock := receipt.Receipt{
		UID: string(c.pod.UID), Owner: c.ref().String(), State: receipt.Locks, Share: receipt.Share{ID: id}, HandsOver: true, Write: receipt.Draw(),
	}
	err = persist(ctx, func() error {
		_, err := s.SwapLock(ctx, &metav1.PartialObjectMetadata{ObjectMeta: c.pod.ObjectMeta}, "", lock)
		if errors.Is(err, store.ErrConflict) {
			return nil // nobody else writes it: an earlier try, whose answer was lost, was accepted
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	var all []store.Receipt
	err = persist(ctx, func() (err error) {
		all, err = s.Receipts(ctx, c.ref(), id)
		return err
	})
	if err == nil && (len(all) != 1 || all[0].Text != lock.Encode()) {
		err = fmt.Errorf("slot %d has %d receipts", id, len(all))
	}
	return id, nil, err
}

// named reads the owner and returns the slot that it proposes to the pod.
func named(ctx context.Context, s *store.Store, c claimant) (id int, err error) {
	var owner store.Owner
	err = persist(ctx, func() (err error) {
		owner, err = s.Get(ctx, c.ref())
		return err
	})
	if err != nil {
		return 0, err
	}
	id, ok := owner.Record.State.Slots.Of(c.pod.Name)
	if !ok {
		return 0, fmt.Errorf("the owner has no slot for %s", c.pod.Name)
	}
	return id, nil
}

// persist repeats do, after a short sleep, while the server does not answer in time.
func persist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !store.Temporary(err) {
			return err
		}
		if err := pause(ctx, patchSleep); err != nil {
			return err
		}
	}
}

func (floor) verify(ctx context.Context, w *workload, all []claimed) error {
	return w.verifyMap(ctx, assignment.Key, all)
}

// get is one GET of the owner, which has no annotations, for each pod.
type get struct{}

func (get) name() string { return "get" }

func (get) prepare(context.Context, *workload) error { return nil }

func (get) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := appsClient(c.config)
	if err != nil {
		return 0, nil, err
	}
	return c.index, nil, client.Get().Namespace(c.namespace).Resource("deployments").Name(c.deployment).Do(ctx).Error()
}

func (get) verify(context.Context, *workload, []claimed) error { return nil }

// patch is one merge patch of the owner for each pod, without a condition, that sets an annotation of
// the pod's own. The API server repeats a patch that met another write by itself, until it has tried for a
// minute; then it answers 504 or drops the connection, and the pod sends it again.
type patch struct{}

// patchSleep is the longest sleep before a request is sent again.
const patchSleep = 50 * time.Millisecond

func (patch) name() string { return "patch" }

func (patch) prepare(context.Context, *workload) error { return nil }

func patchKey(index int) string { return fmt.Sprintf("bench.idalloc.dev/%d", index) }

func (patch) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := appsClient(c.config)
	if err != nil {
		return 0, nil, err
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, patchKey(c.index), c.pod.Name)
	for {
		err := client.Patch(types.MergePatchType).Namespace(c.namespace).Resource("deployments").Name(c.deployment).Body(body).Do(ctx).Error()
		if !again(err) {
			return c.index, nil, err
		}
		if err := pause(ctx, patchSleep); err != nil {
			return 0, nil, err
		}
	}
}

// again reports whether a request may have another outcome when it is sent again: it met another write, took
// too long, or was not answered.
func again(err error) bool {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return err != nil
	}
	return apierrors.IsConflict(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

func (patch) verify(ctx context.Context, w *workload, all []claimed) error {
	annotations, err := w.annotations(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !c.stopped && annotations[patchKey(c.id)] != c.pod {
			err = errors.Join(err, fmt.Errorf("the patch of %s was accepted and is not there", c.pod))
		}
	}
	return err
}

// appsClient returns a client that leaves answers undecoded.
func appsClient(config *rest.Config) (rest.Interface, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.AppsV1().RESTClient(), nil
}
