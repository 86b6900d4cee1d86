package allocator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// eventTimeout bounds the time that the loop spends on an Event.
	eventTimeout = 5 * time.Second
	// complainAgain is the least time between two Events of one pod that say why it waits.
	complainAgain = time.Minute
	// announceAgain is the least time between two Events of one pod about partitions that have the same reason.
	announceAgain = time.Minute
)

// announced leaves Kubernetes Events about what people have to know who look at the owner or at this pod.
type announced struct {
	contact *contact
	store   *store.Store
	pod     metav1.OwnerReference

	// full says that an Event told of an owner without room since this pod had a slot.
	full atomic.Bool
	// mu is held while the others are used, and not while an Event is under way: of two goroutines that leave one, neither waits for the
	// other. complaint is what an Event said last of why this pod waits.
	mu        sync.Mutex
	complaint complaint
	// claiming is when the claim under way began, and complained says that an Event told why it takes long.
	claiming   time.Time
	complained bool
	// told is when an Event of each reason about partitions was left last.
	told map[string]time.Time
}

// Observe implements event.Observer.
func (a *announced) Observe(e event.Event) {
	switch e := e.(type) {
	case event.Damaged:
		kind := store.EventWarning
		if e.Expected {
			kind = store.EventNormal
		}
		a.leave(store.Event{About: e.About, Type: kind, Reason: e.Reason, Message: e.Detail})
	case event.NoRoom:
		if !a.full.Load() {
			a.full.Store(a.leave(store.Event{
				About: e.About, Type: store.EventWarning, Reason: "AssignmentTooLarge",
				Message: e.Detail + ": pods without an id wait, those that have one keep it",
			}))
		}
	case event.Claiming:
		a.begin()
	case event.StillWaiting:
		a.complain(e.Reason)
	case event.Taken:
		a.full.Store(false)
		a.relieve(e.ID)
	case event.Given:
		if e.Requester != "" {
			a.leaveLater(store.Event{
				About: e.About, Type: store.EventNormal, Reason: "SlotHandedOver",
				Message: fmt.Sprintf("pod %s handed id %d over to pod %s of the current revision", a.pod.Name, e.ID, e.Requester),
			})
		}
	case event.Lost:
		a.leaveLater(store.Event{About: a.pod, Type: store.EventWarning, Reason: "IDLost", Message: fmt.Sprintf("id %d is lost: %s", e.ID, e.Reason)})
	default:
		a.partitions(e)
	}
}

// partitions leaves Events about partitions.
func (a *announced) partitions(e event.Event) {
	switch e := e.(type) {
	case event.PartitionsInForce:
		a.leaveSeldom(store.Event{
			About: e.About, Type: store.EventNormal, Reason: "PartitionsInForce", Message: e.New.String() + " are in force; before: " + e.Old.String(),
		})
	case event.FailedOver:
		const most = 3 // the log of this pod has all of them
		parts := make([]string, 0, len(e.From))
		for _, f := range e.From[:min(most, len(e.From))] {
			parts = append(parts, f.String())
		}
		if more := len(e.From) - most; more > 0 {
			parts = append(parts, fmt.Sprintf("and those of %d more ids did so, too", more))
		}
		a.leaveSeldom(store.Event{About: e.About, Type: store.EventWarning, Reason: "PartitionsFailedOver", Message: strings.Join(parts, "; ")})
	case event.Paused:
		if e.Paused && e.For > 0 {
			a.leaveSeldom(store.Event{About: a.pod, Type: store.EventWarning, Reason: "PartitionsPaused", Message: fmt.Sprintf(
				"the program failed %d times in a row: for %s other pods get the partitions of id %d", e.Failed, e.For.Round(time.Second), e.ID)})
		}
	case event.PartitionsHeldUp:
		if !e.Unannounced {
			a.leaveSeldom(store.Event{About: e.About, Type: store.EventWarning, Reason: e.Reason, Message: e.Detail})
		}
	}
}

// leaveSeldom is leave, at most once a minute for each reason. Other processes' Events of the same minute have the same name, so that
// the API server keeps one of them.
func (a *announced) leaveSeldom(e store.Event) {
	if !a.due(e.Reason) || a.leave(e) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.told, e.Reason)
}

// due reports whether an Event about partitions may be left now, and notes that it is.
func (a *announced) due(reason string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.contact.clock.Now()
	if last, told := a.told[reason]; told && now.Sub(last) < announceAgain {
		return false
	}
	if a.told == nil {
		a.told = map[string]time.Time{}
	}
	a.told[reason] = now
	return true
}

// begin notes that a claim begins.
func (a *announced) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claiming, a.complained = a.contact.clock.Now(), false
}

// complain says on the pod why it waits.
func (a *announced) complain(what string) {
	next := complaint{what: what, at: a.contact.clock.Now()}
	a.mu.Lock()
	before := a.complaint
	due := before.due(what, next.at)
	if due {
		a.complaint, a.complained = next, true
	}
	a.mu.Unlock()
	if !due || a.leave(waitingEvent(a.pod, what)) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complaint, a.complained = before, false
}

// relieve says on the pod that it has an id, if an Event said that it waits.
func (a *announced) relieve(id int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.complained {
		return
	}
	a.complained = false
	a.leaveLater(store.Event{About: a.pod, Type: store.EventNormal, Reason: "SlotTaken", Message: fmt.Sprintf(
		"got id %d after %s; before, idalloc waited for %s", id, a.contact.clock.Since(a.claiming).Round(time.Second), a.complaint.what)})
}

// leaveLater is leave in a goroutine, for what the loop must not wait for. It ends with follow.
func (a *announced) leaveLater(e store.Event) {
	a.contact.running.Go(func() { a.leave(e) })
}

// leave writes an Event. It is best effort: one that cannot be written is logged.
func (a *announced) leave(e store.Event) (left bool) {
	ctx, cancel := context.WithTimeout(a.contact.streams, eventTimeout)
	defer cancel()
	e.Namespace, e.Reporter = a.contact.ref.Namespace, a.pod.Name
	if err := a.store.Tell(ctx, e); err != nil {
		a.contact.log.V(1).Info("the event could not be written", "reason", err.Error())
		return false
	}
	return true
}

// complaint is what this pod's Events said of its waiting.
type complaint struct {
	what string
	at   time.Time
}

// due reports whether an Event is to say now that the pod waits for what: once, and again when the reason changed, but seldom.
func (c complaint) due(what string, now time.Time) bool {
	return what != "" && withoutNumbers(what) != withoutNumbers(c.what) && (c.what == "" || now.Sub(c.at) >= complainAgain)
}

// withoutNumbers returns the text without its numbers, and without the units of times. In a large workload the number of pods that live
// changes all the time, and the reason to wait is still the same.
func withoutNumbers(text string) string {
	number := false
	return strings.Map(func(r rune) rune {
		if number = (r >= '0' && r <= '9') || (number && strings.ContainsRune("hms", r)); number {
			return -1
		}
		return r
	}, text)
}

func waitingEvent(pod metav1.OwnerReference, what string) store.Event {
	return store.Event{About: pod, Type: store.EventWarning, Reason: "WaitingForSlot", Message: "no id yet: idalloc waits for " + what}
}
