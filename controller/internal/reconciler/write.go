package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// step is a kind of write. The metrics use it as a label.
type step string

const (
	stepMap      step = "map"
	stepTake     step = "take"
	stepWithdraw step = "withdraw"
	stepBegin    step = "begin"
	stepCount    step = "count"
	stepPropose  step = "propose"
)

// write is one write on a pod.
type write struct {
	pod  string
	step step
	// says identifies the content of the write. It is empty if the content differs each time. If the last write had the same content, another writer has undone
	// it.
	says string
	do   func(ctx context.Context, pod *podMeta) (*podMeta, error)
}

// write sends the writes that are due. For all owners together, at most cap(slots) are in flight. A failed write affects only its own pod: it is retried later,
// and no other pod waits for it. When the pass is over, or when left returns true, the remaining writes are left to the next pass.
func (p *pass) write(ctx context.Context, slots chan struct{}, all []write, left func(sent int) bool) {
	var under sync.WaitGroup
	defer under.Wait()
	own := make(chan struct{}, (3*cap(slots)+3)/4) // if these writes hang, other owners still get slots
	for i, w := range all {
		if p.over() || left != nil && left(i) {
			return
		}
		if !p.due(w) {
			continue
		}
		own <- struct{}{} // each write has its own timeout
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		under.Go(func() {
			defer func() { <-slots; <-own }()
			p.writeOne(ctx, w)
		})
	}
}

// due reports whether the write should be tried now. If not, it requeues the owner for later.
func (p *pass) due(w write) bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	left := p.memory.backoff(p.metas[w.pod].UID, w.step).left(p.metas[w.pod], w.says, p.store.Clock.Now())
	p.requeue(left)
	return left <= 0
}

func (p *pass) writeOne(ctx context.Context, w write) {
	pod := p.meta(w.pod)
	written, err := w.do(ctx, pod)
	if err == nil {
		p.wrote(w.pod, written)
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	a, now := p.memory.backoff(pod.UID, w.step), p.store.Clock.Now()
	switch {
	case err == nil && w.says == "":
		delete(p.memory.writes, writeKey{pod.UID, w.step})
	case err == nil:
		a.accepted(w.says, now)
	case errors.Is(err, request.ErrGone): // the watch reports the deletion and starts a pass
	case ctx.Err() != nil: // the pass is over
	default:
		a.failed(pod, fmt.Errorf("pod %s: %s: %w", w.pod, w.step, err), now)
		p.requeue(a.until.Sub(now))
		p.fail(w.step, a.err)
	}
}

// fail logs and counts an error that does not end the pass.
func (p *pass) fail(of step, err error) {
	p.metrics.failed.WithLabelValues(string(of)).Inc()
	if errors.Is(err, request.ErrConflict) {
		p.metrics.conflicts.Inc()
	}
	if errors.As(err, new(*request.ForbiddenError)) {
		p.forbidden = err
	}
	p.log.V(1).Info("a write failed, and is retried", "step", string(of), "detail", err.Error())
}

// wrote records the object that a write returned.
func (p *pass) wrote(name string, written *podMeta) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.metas[name], p.written[name] = written, written
	q := p.pod(name)
	if q == nil {
		return
	}
	if !q.Agent || q.Former.State == receipt.None {
		if q.Receipt, _ = receipt.Of(written, p.ref.String()); q.Receipt.State == receipt.None {
			q.Receipt = receipt.Elsewhere(written, p.ref.String())
		}
	}
	// Only Begin writes an id. It also removes the gate, but its answer is metadata and does not show the gate.
	q.Gated = q.Gated && q.ID == written.Annotations[receipt.IDKey]
	if p.says(q, written); q.Agent {
		p.memory.agents.see(q, p.world.Now)
	}
}

// caughtUp waits up to a second until the cache shows what this pass wrote. Otherwise the next pass would see old pods, and its writes would fail their tests.
// It is best effort: after the second, a later pass sees the rest.
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
