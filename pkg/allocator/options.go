package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/work"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

var (
	// ErrNoSlot means that the context ended before there was a slot.
	// Error: exit code 3: `--timeout` is over; the sentence says what the pod waited for.
	// Do: see [a pod waits for a slot](operations.md#a-pod-waits-for-a-slot).
	ErrNoSlot = errors.New("no slot")
	// ErrPodGone means that this process's pod object does not exist (any more), so it must not hold an id.
	// Error: exit code 1: the pod was deleted by force, and the id is withdrawn.
	ErrPodGone = errors.New("the pod of this process does not exist")
	// ErrAssigned means that idalloc-controller writes the receipt of this pod, so this process must not.
	// Error: exit code 1: the pod template has the label `idalloc.dev/assign: controller`, and a container runs idalloc.
	// Do: remove one of them. The program reads its id from `IDALLOC_ID` or `/var/run/idalloc`; see [the controller](controller.md).
	ErrAssigned = errors.New("the controller gives this pod its id")
)

// MinFenceAfter is the shortest fence-after. With a shorter one, a slow API server would take ids away.
const MinFenceAfter = 3 * time.Second

// Options configure an Allocator. Store, Pod and Namespace are required.
type Options struct {
	Store          *store.Store
	Pod, Namespace string
	// PodUID is this pod's UID. If empty, New uses the UID of the pod that has this name.
	PodUID types.UID
	Log    logr.Logger
	// Publish is called with every new identity, including its partitions, from the goroutine of Run, Claim or Release. It must return soon. When it
	// returns, no work may begin outside the identity.
	Publish func(identity.Identity)
	// Stale is called when contact with the API server is lost (true) and when it is restored (false). The identity does not change.
	Stale func(bool)
	// Stop blocks until the work it describes has stopped. It is called after publishing an identity without that work. After an error the work continues,
	// and Stop is called again later. Each call has its own goroutine, and calls for different partitions may run concurrently. Its context ends with the
	// process, or when the stop is called off or replaced.
	Stop func(context.Context, Stop) error
	// Left returns what an earlier process of the pod with this UID published last, so that its work can continue. New calls it. Nil: no work of an earlier
	// process is left, however that process ended.
	Left func(uid string) identity.Identity
	// LastStop is the Number of the last Stop of an earlier process of this container, 0 if there was none. Numbering continues from it.
	LastStop int
	// HandsOver: a nil error of Stop means that the work has stopped, and not only that it had time to stop. Then a waiter of a newer revision may ask for
	// the slot, and partitions may move while the process lives.
	HandsOver bool
	// FenceAfter turns strict mode on: the id ends by itself after that long without contact with the API server. Zero turns it off.
	FenceAfter time.Duration
	// FenceLead is how long before FenceAfter the id is fenced, so that Fenced has time to stop the work. It is at most half of FenceAfter.
	FenceLead time.Duration
	// Fenced is called, in strict mode only, when the id is fenced for lack of contact, before Publish. The work must have stopped by the given time, on
	// the clock of boottime.Now, which also runs during suspend. The time may have passed already. Fenced must not wait for the work. It may be called from
	// any goroutine, and again for the same id.
	Fenced func(by time.Duration)
	// Divides: the process works on partitions.
	Divides bool
	// Pause delivers requests to pause: after true, the process yields all partitions and takes none until it receives false. It may be nil.
	Pause <-chan bool
	// Paused: the process begins with a pause.
	Paused bool
	// RestsAfterFailures: a process whose program failed three times in a row gets no partitions for a while, if other pods can work on them. Without Left,
	// a crash of the process also counts as a failure.
	RestsAfterFailures bool
	// Strategies are this program's own strategies, by name, in addition to those of package placement.
	Strategies map[string]placement.Strategy
	// Observer receives the events. It may be nil.
	Observer event.Observer
}

// Stop describes the work to stop.
type Stop = work.Stop

func (o *Options) complete() error {
	if o.Publish == nil {
		o.Publish = func(identity.Identity) {}
	}
	if o.Stale == nil {
		o.Stale = func(bool) {}
	}
	if o.Stop == nil {
		o.Stop = func(context.Context, Stop) error { return nil }
	}
	if o.Fenced == nil {
		o.Fenced = func(time.Duration) {}
	}
	switch {
	case o.FenceAfter == 0:
		return nil
	case o.FenceAfter < MinFenceAfter || o.FenceAfter > assignment.MaxFenceAfter:
		return fmt.Errorf("fence-after %s: use %s to %s", o.FenceAfter, MinFenceAfter, assignment.MaxFenceAfter)
	case o.FenceLead < 0 || o.FenceLead > o.FenceAfter/2:
		return fmt.Errorf("the time to stop the work in, %s, is not in [0, half of fence-after %s]", o.FenceLead, o.FenceAfter)
	}
	return nil
}

// strategy finds a strategy by its name.
func (o *Options) strategy(name string) (placement.Strategy, error) {
	if own, known := o.Strategies[name]; known {
		return own, nil
	}
	return placement.Named(name)
}
