package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/internal/pidlock"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// ErrTimeout means that no id was claimed within Options.Timeout.
var ErrTimeout = errors.New("--timeout is over")

const (
	// releaseTimeout limits the release after a signal. It is shorter than Kubernetes' default grace period of 30 s.
	releaseTimeout = 10 * time.Second
	// calmTimeout limits the release if no signal has come. A slot that is not released stays locked until Kubernetes restarts the container, which may take
	// five minutes.
	calmTimeout = 2 * time.Minute
)

// Options are the common options of Init, Watch and Run.
type Options struct {
	// Allocator configures the pod and the API server. This package sets its callbacks.
	Allocator allocator.Options
	// Dir is the directory in which identities are published. If it is empty, there are no files.
	Dir string
	// HTTPAddress is the address of the HTTP server. If it is empty, there is no server.
	HTTPAddress string
	// Timeout limits the wait for the first id. Zero waits forever.
	Timeout time.Duration
	// MoveDelay is the minimum time between withdrawing an id from the files and giving its slot, so that readers of the files can notice. It applies to slots
	// at or above the count, which no other pod can use in that time.
	MoveDelay time.Duration
	// FenceAfter turns on strict mode. Zero means off.
	FenceAfter time.Duration
	// Partitions: the program works on partitions.
	Partitions bool
	// Alone: this process runs in the pod, so no other process of the pod may claim ids at the same time.
	Alone bool
	// Version is the program's version, for the metrics.
	Version string
}

// work is the program that acts under the id.
type work interface {
	// before is called with an identity before the files and the HTTP answers show it.
	before(id identity.Identity) error
	// after is called once the files and the HTTP answers show it.
	after(id identity.Identity)
}

// agent shows the identities of one allocator.
type agent struct {
	o       Options
	dir     *volume // nil without a directory
	hub     *serve.Hub
	metrics *meter.Metrics // nil without an HTTP server
	work    work
	readers *readers
	// alloc is nil until the owner is known.
	alloc atomic.Pointer[allocator.Allocator]
	// left is the identity under which the work of an earlier process of the pod may still run.
	left identity.Identity
	// mu is held until the work, the files and the HTTP answers all have the same identity.
	mu sync.Mutex
	// shown is the identity that they all have. next is the latest identity that the allocator published.
	shown, next identity.Identity
	stops       stops
	// first fires once: at the first id, or at the timeout.
	first sync.Once
	// fail ends the agent with an error.
	fail context.CancelCauseFunc
	// leave lets another process of the pod claim ids. It is nil if enter has locked nothing.
	leave func()
}

// newAgent prepares the directory. The caller must call close.
func newAgent(o Options, fail context.CancelCauseFunc) (*agent, error) {
	a := &agent{o: o, readers: &readers{delay: o.MoveDelay}, fail: fail}
	if err := a.enter(o.Allocator.PodUID); err != nil {
		return nil, err
	}
	first := identity.Pending(o.Allocator.Pod, o.Allocator.Namespace)
	if o.Dir != "" {
		var err error
		if a.dir, first, err = open(o.Dir, o.Allocator); err != nil {
			a.close()
			return nil, err
		}
		a.left, a.shown, a.readers.owned = a.dir.left, a.dir.left, a.dir.left.Partitions.Owned()
	}
	a.hub = serve.NewHub(first)
	a.hub.CheckFenced(a.fenced)
	a.o.Allocator.Publish, a.o.Allocator.Stale, a.o.Allocator.Left = a.publish, a.hub.SetStale, a.leftBy
	a.o.Allocator.Divides = o.Partitions
	if o.HTTPAddress != "" {
		a.metrics = meter.NewOf(o.Version)
		a.metrics.CheckFenced(a.fenced)
		a.o.Allocator.Observer = a.metrics
	}
	return a, nil
}

// enter makes this process the only one of its pod that claims ids. It does nothing while the pod's UID is unknown.
func (a *agent) enter(uid types.UID) (err error) {
	if a.o.Alone && a.leave == nil && uid != "" {
		a.leave, err = pidlock.Hold(a.o.Allocator.Pod, string(uid))
	}
	return err
}

// close lets another process of the pod claim ids.
func (a *agent) close() {
	if a.leave != nil {
		a.leave()
	}
}

// fenced reports whether the process is fenced: it compares the deadline with the clock.
func (a *agent) fenced() bool {
	alloc := a.alloc.Load()
	return alloc != nil && alloc.Fenced()
}

func (a *agent) healthy(context.Context) error {
	if alloc := a.alloc.Load(); alloc != nil {
		return alloc.Healthy()
	}
	return nil // the owner is not known yet, which is no reason to restart
}

// waiting explains what the process waits for. It is empty if it waits for nothing.
func (a *agent) waiting() string {
	if alloc := a.alloc.Load(); alloc != nil {
		return alloc.Waiting()
	}
	return ""
}

// leftBy implements allocator.Options.Left. Without POD_UID, only uid shows whose files the directory holds.
func (a *agent) leftBy(uid string) identity.Identity {
	if a.dir == nil || a.dir.Pod() != uid {
		return identity.Identity{}
	}
	return a.left
}

// publish implements allocator.Options.Publish.
func (a *agent) publish(id identity.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = id
	a.showNext()
}

// showNext shows the latest identity that the allocator published. The caller must hold the lock.
func (a *agent) showNext() {
	if a.next.State == "" {
		return // it has published nothing
	}
	if a.next.Assigned() && a.fenced() {
		a.next = a.next.Without(identity.StateFenced) // the deadline has passed since the allocator decided
	}
	next, err := a.stops.of(a.next)
	if err != nil {
		a.fail(err)
		return
	}
	a.show(next)
}

// showFenced withdraws the shown id, if any, because the process is fenced. It does not wait for the allocator.
func (a *agent) showFenced() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shown.Assigned() {
		a.next = a.shown.Without(identity.StateFenced)
		a.showNext()
	}
}

// show passes the identity to the work, the files and the HTTP answers. The caller must hold the lock.
func (a *agent) show(id identity.Identity) {
	if err := a.work.before(id); err != nil {
		a.fail(err)
		return
	}
	if a.dir != nil {
		if err := a.dir.Publish(id); err != nil {
			a.fail(err) // a restart is better than files with an old identity
			if id.Assigned() {
				return
			}
		} else {
			a.readers.shown(id)
		}
	}
	a.hub.Set(id)
	a.shown = id
	if id.Assigned() {
		a.first.Do(func() {})
	}
	a.work.after(id)
}

// claim runs the allocator until ctx ends, or until the timeout passes without an id. It calls ready before the allocator publishes the first identity.
func (a *agent) claim(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if a.o.Timeout > 0 {
		timer := time.AfterFunc(a.o.Timeout, func() {
			a.first.Do(func() { cancel(fmt.Errorf("%w (%s)", ErrTimeout, a.o.Timeout)) })
		})
		defer timer.Stop()
	}
	alloc, err := a.newAllocator(ctx)
	if err != nil {
		return err
	}
	a.alloc.Store(alloc)
	if err := ready(); err != nil {
		return err
	}
	return alloc.Run(ctx)
}

// newAllocator finds the owner and claims the directory for this pod.
func (a *agent) newAllocator(ctx context.Context) (*allocator.Allocator, error) {
	alloc, err := allocator.New(ctx, a.o.Allocator)
	if errors.Is(err, allocator.ErrPodGone) && a.dir != nil {
		return nil, errors.Join(err, a.dir.empty())
	}
	if err == nil {
		err = a.enter(types.UID(alloc.PodUID()))
	}
	if err != nil || a.dir == nil {
		return alloc, err
	}
	return alloc, a.dir.adopt(alloc.PodUID())
}

// serve starts the HTTP server; a nil server is skipped. If the server fails, the agent ends. The returned function blocks until the server has ended, which
// happens after ctx ends.
func (a *agent) serve(ctx context.Context, server *serve.Server) (wait func(), err error) {
	if server == nil {
		return func() {}, nil
	}
	if err := server.Listen(ctx); err != nil {
		return nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Run(ctx); err != nil {
			a.fail(err)
		}
	}()
	return func() { <-served }, nil
}

// server returns the HTTP server, or nil if there is no address.
func (a *agent) server() *serve.Server {
	if a.o.HTTPAddress == "" {
		return nil
	}
	server := serve.NewServer(a.o.HTTPAddress, a.hub, a.healthy)
	server.ServeMetrics(a.metrics.WriteText)
	server.SayWhy(a.waiting)
	return server
}

// release releases the slot, if the pod has one. The work under it must have stopped.
func (a *agent) release(ctx context.Context, alloc *allocator.Allocator, byItself bool) {
	if err := alloc.Release(ctx, byItself); err != nil {
		// Log: at the end, the API server did not answer in time.
		a.o.Allocator.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", err.Error())
	}
}

// sleep waits for d. It returns false if ctx ends before that.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
