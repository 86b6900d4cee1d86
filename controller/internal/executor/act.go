package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// each writes something on the pod of each item, at most as many at a time as there are slots, for all owners together, and returns the first error. That
// a pod is gone is none: the watch says so, too, and a pass comes.
func each[T any](ctx context.Context, slots chan struct{}, items []T, do func(context.Context, T) error) error {
	var all errgroup.Group
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() error {
			defer func() { <-slots }()
			if err := do(ctx, item); !errors.Is(err, store.ErrGone) {
				return err
			}
			return nil
		})
	}
	return all.Wait()
}

// wrote takes in the answer to a write.
func (p *pass) wrote(name string, written *podMeta) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.metas[name], p.written[name] = written, written
	q := p.pod(name)
	if q == nil {
		return
	}
	if !q.Agent || q.Former.State == receipt.None {
		q.Receipt, _ = receipt.Of(written, p.ref.String())
	}
	// Only Begin writes an id, and it takes the gate away, of which the answer says nothing.
	q.Gated = q.Gated && q.ID == written.Annotations[store.IDKey]
	if says(q, written); q.Agent {
		p.temper.memory.see(q, p.world.Now)
	}
}

func (p *pass) meta(name string) *podMeta {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.metas[name]
}

// swap writes a receipt on a pod, whatever that says.
func (p *pass) swap(ctx context.Context, name string, next receipt.Receipt) error {
	meta := p.meta(name)
	next.UID, next.Owner, next.Write = string(meta.UID), p.ref.String(), receipt.Draw()
	written, err := p.store.Take(ctx, meta, next)
	if err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	p.wrote(name, written)
	return nil
}

// take is T2.
func (p *pass) take(ctx context.Context, takes []heart.Take) error {
	return each(ctx, p.slots, takes, func(ctx context.Context, t heart.Take) error {
		return p.swap(ctx, t.Pod, receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: t.ID}})
	})
}

func (p *pass) withdraw(ctx context.Context, names []string) error {
	return each(ctx, p.slots, names, func(ctx context.Context, name string) error {
		return p.swap(ctx, name, receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()})
	})
}

// begin has programs begin under what T3 confirmed.
func (p *pass) begin(ctx context.Context, begins []heart.Begin) error {
	return each(ctx, p.slots, begins, func(ctx context.Context, b heart.Begin) error {
		meta := p.meta(b.Pod)
		next := receipt.Receipt{
			UID: string(meta.UID), Owner: p.ref.String(), State: receipt.Locks, Share: receipt.Share{ID: b.ID}, Begun: true, Write: receipt.Draw(),
		}
		written, err := p.store.Begin(ctx, meta, next, annotations(b.Words), b.Gated)
		if err != nil {
			return fmt.Errorf("pod %s: begin: %w", b.Pod, err)
		}
		p.wrote(b.Pod, written)
		p.metrics.began(p.store.Clock.Now().Sub(meta.CreationTimestamp.Time))
		return nil
	})
}

// publish tells running pods what changed.
func (p *pass) publish(ctx context.Context, all []heart.Publish) error {
	now := p.store.Clock.Now()
	due := p.temper.due(all, p.metas, now)
	if len(due) < len(all) {
		p.sooner(p.temper.untold.Left(now))
	}
	err := each(ctx, p.slots, due, func(ctx context.Context, b heart.Publish) error {
		meta := p.meta(b.Pod)
		written, err := p.store.Publish(ctx, meta, annotations(b.Words))
		if err != nil {
			return fmt.Errorf("pod %s: tell the count: %w", b.Pod, err)
		}
		p.wrote(b.Pod, written)
		return nil
	})
	p.temper.published(due, p.written, now)
	return err
}

func annotations(w heart.Words) map[string]string {
	return map[string]string{store.IDKey: w.ID, store.CountKey: w.Count, store.IdentityKey: w.Identity}
}

// caughtUp waits for a moment until the cache shows what this pass wrote. Without that the next pass would see pods as they were, and its writes would
// fail their tests. It is no condition: what the cache does not show by then, it shows later.
func (p *pass) caughtUp(ctx context.Context) error {
	const step, most = time.Millisecond, time.Second
	err := wait.PollUntilContextTimeout(ctx, step, most, true, func(ctx context.Context) (bool, error) {
		maps.DeleteFunc(p.written, func(name string, meta *podMeta) bool {
			pod := &corev1.Pod{}
			err := p.cache.Get(ctx, client.ObjectKey{Namespace: p.ref.Namespace, Name: name}, pod, client.UnsafeDisableDeepCopy)
			order, _ := resourceversion.CompareResourceVersion(pod.ResourceVersion, meta.ResourceVersion)
			return err != nil || pod.UID != meta.UID || order >= 0
		})
		return len(p.written) == 0, nil
	})
	if wait.Interrupted(err) {
		return ctx.Err()
	}
	return err
}
