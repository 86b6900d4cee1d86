package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/watch"
)

var (
	// ErrNoSlot means that the context ended before there was a slot.
	ErrNoSlot = errors.New("idalloc: no slot")
	// ErrPodGone means that this process's pod object does not exist (any more), so it must not hold an id.
	ErrPodGone = errors.New("idalloc: the pod of this process does not exist")
)

// Options configure an Allocator. Store, Pod and Namespace are required.
type Options struct {
	Store          *store.Store
	Pod, Namespace string
	// PodUID is this pod's UID; empty: that of the pod that has its name when New looks.
	PodUID types.UID
	Log    logr.Logger
	// Publish is called with every new identity, from the goroutine of Run or Claim. It must not block for
	// long. When it returns, an identity that is not assigned must be in force.
	Publish func(identity.Identity)
	// Stale is called when contact with the API server is lost (true) and when it is found again (false). The identity
	// does not change with it.
	Stale func(bool)
	// Stopped blocks until the work under the id has stopped. It is called after a draining
	// identity was published and before the slot is given away. If its context ends first, there is no reason to give
	// the slot away any more: Stopped must return, and the pod keeps the slot. After an error it is called again; until then a
	// slot below the count is in use again.
	Stopped func(context.Context) error
	// HandsOver says that a nil error of Stopped means that the work has stopped, and not only that it had time to stop.
	// Then a waiter of a newer revision may ask for the slot.
	HandsOver bool
	// DiesWithProcess says that the work ends with this process, however the process ends. So nothing is left of the work of an
	// earlier process of this pod.
	DiesWithProcess bool
	// FenceAfter turns strict mode on: the id ends by itself after that long without contact with the API server. Zero is off.
	FenceAfter time.Duration
	// FenceLead is how long before FenceAfter the id is fenced, so that Fenced has time to stop the work. It is at most half of
	// FenceAfter.
	FenceLead time.Duration
	// Fenced is called, in strict mode only, when the id is fenced for lack of contact or lost, before Publish is.
	// The work must have stopped by that time, on the clock of boottime.Now, which goes on in suspend. The time may be past.
	// Fenced may block until then. It may be called from any goroutine, and again for the same id.
	Fenced func(by time.Duration)
	// Partitions has the process work on partitions. Nil: it works on none.
	Partitions *Partitions
	// Observer is told what happens to the claim, as the log and the Kubernetes Events are. It may be nil.
	Observer event.Observer
	// Memory lets the next process of this pod count a quarantine from when this one first saw it, so that a process that
	// does not live as long as a quarantine gets an id. Nil: each process counts anew.
	Memory Memory
}

// Allocator holds at most one slot for one pod. One goroutine may use it at a time, except for
// Healthy and Waiting.
type Allocator struct {
	connection
	ownPod
	o Options
	shown
	held *held
	// claimedWith estimates how many pods claimed together with this one.
	claimedWith int
	wait
	// rollout is where this pod stood in a rolling update when it planned last.
	rollout plan.Rollout
	strict  strictMode
	// quarantined is what this process knows of quarantines, its own mode or not.
	quarantined quarantines
	damping     damper
	foreignWrites
	shares     shares
	pause      pause
	vacancies  vacancies
	heldUp     heldUp
	departures departures
}

// New reads the pod and finds its owner. It blocks until the API server answers or ctx ends.
// The errors are a strict mode that cannot work, those of watch.Resolve, and ErrPodGone for a pod that does not exist.
func New(ctx context.Context, o Options) (*Allocator, error) {
	if err := o.checkFence(); err != nil {
		return nil, err
	}
	boot := boottime.Of(o.Store.Clock)
	a := &Allocator{
		connection: connection{store: o.Store, clock: o.Store.Clock, log: o.Log, pace: pace.New(rand.Float64), name: o.Pod, tellStale: o.Stale},
		o:          o, quarantined: quarantines{now: boot.BootTime, keeper: keeper{memory: o.Memory, boot: boottime.Boot()}},
		departures: departures{now: boot.BootTime},
		strict:     strictMode{boot: boot, after: o.FenceAfter, lead: o.FenceLead, tell: o.Fenced},
	}
	if a.announce = o.Publish; a.announce == nil {
		a.announce = func(identity.Identity) {}
	}
	if a.tellStale == nil {
		a.tellStale = func(bool) {}
	}
	if a.o.Stopped == nil {
		a.o.Stopped = func(context.Context) error { return nil }
	}
	if a.strict.tell == nil {
		a.strict.tell = func(time.Duration) {}
	}
	a.server = &a.connection
	a.setWaiting("the API server's answer about this pod and its owner")
	a.began = a.clock.Now()
	if o.Observer != nil {
		a.happened = event.Observers{o.Observer} // the others have to know the owner
	}
	err := a.persist(ctx, "find the owner", func() error {
		pod, err := a.store.GetPod(ctx, o.Namespace, o.Pod)
		if errors.Is(err, store.ErrGone) {
			return fmt.Errorf("%w: %w: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)", ErrPodGone, err)
		}
		if err != nil {
			return err
		}
		if o.PodUID != "" && pod.UID != o.PodUID {
			return fmt.Errorf("%w: %s has UID %s, this process's pod had %s: its container must end, its node may not know yet that the pod was deleted", ErrPodGone, o.Pod, pod.UID, o.PodUID)
		}
		ref, err := watch.Resolve(ctx, a.store, pod)
		if err != nil {
			return err
		}
		a.pod, a.ref = pod, ref
		return nil
	})
	if err != nil {
		return nil, err
	}
	if a.shares.on = o.Partitions; a.shares.on != nil && a.shares.on.Left != nil {
		a.shares.left = a.shares.on.Left(string(a.pod.UID))
	}
	a.answered()
	a.log = a.log.WithValues("owner", a.ref.String(), "namespace", o.Namespace, "pod", o.Pod)
	a.quarantined.log = a.log
	a.happened = event.Observers{
		logged{a.log},
		&announced{connection: &a.connection, pod: metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: o.Pod, UID: a.pod.UID}},
	}
	if o.Observer != nil {
		a.happened = append(a.happened, o.Observer)
	}
	a.current = identity.Pending(o.Pod, o.Namespace)
	a.current.Owner = a.ref.Owner()
	return a, nil
}

// PodUID returns the UID of this pod, by which a successor of the same name is told apart.
func (a *Allocator) PodUID() string { return string(a.pod.UID) }

// Owner returns the owner that New found.
func (a *Allocator) Owner() store.Ref { return a.ref }

// Run claims a slot and keeps it until ctx ends. After it lost a slot or gave it away, it claims another one.
// It returns context.Cause(ctx), with ErrNoSlot if there was no slot at that moment. An error that repeating does not cure
// ends it at once. It does not release the slot: call Release after it, when the work has stopped.
func (a *Allocator) Run(ctx context.Context) error {
	stop := a.follow(ctx)
	defer stop()
	for {
		if a.held == nil {
			if err := a.claim(ctx); err != nil {
				return a.loseIfGone(err)
			}
		}
		if err := a.hold(ctx); err != nil {
			return a.loseIfGone(err)
		}
	}
}

// loseIfGone publishes that there is no id when this pod does not exist any more.
func (a *Allocator) loseIfGone(err error) error {
	if errors.Is(err, ErrPodGone) {
		a.becomeLost()
	}
	return err
}

// Claim claims a slot and returns. The pod keeps the slot. Errors: as of Run.
func (a *Allocator) Claim(ctx context.Context) (identity.Identity, error) {
	stop := a.follow(ctx)
	defer stop()
	for {
		if a.held == nil {
			if err := a.claim(ctx); err != nil {
				return a.current, a.loseIfGone(err)
			}
		}
		if a.held.id < a.held.view.Count {
			a.becomeAssigned()
			return a.current, nil
		}
		if err := a.leave(ctx); err != nil {
			return a.current, a.loseIfGone(err)
		}
	}
}

// Healthy returns an error if the loop is stuck. Waiting, also for an API server that is away, is not.
func (a *Allocator) Healthy() error { return a.healthy() }

// Waiting says what the allocator waits for, empty if for nothing.
func (a *Allocator) Waiting() string { return a.waitingFor() }
