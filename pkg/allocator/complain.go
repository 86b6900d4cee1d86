package allocator

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// patience is how long a pod waits for a slot before it says so in an Event.
	patience = 30 * time.Second
	// complainAgain is the least time between two such Events of one pod.
	complainAgain = 10 * time.Minute
)

// wait is what this process waits for, and what was said of it.
type wait struct {
	what      atomic.Pointer[string]
	complaint complaint
}

// waitingFor says what is waited for, empty if nothing. It may be called from any goroutine.
func (w *wait) waitingFor() string {
	if s := w.what.Load(); s != nil {
		return *s
	}
	return ""
}

// setWaiting notes what is waited for.
func (w *wait) setWaiting(what string) { w.what.Store(&what) }

// complaint is what this pod's Events said of its waiting.
type complaint struct {
	what string
	at   time.Time
}

// due reports whether an Event is to say now that the pod waits for what: once, and again when the reason changed, but seldom.
func (c complaint) due(what string, now time.Time) bool {
	return what != "" && what != c.what && (c.what == "" || now.Sub(c.at) >= complainAgain)
}

// complain leaves an Event on the pod when the claim under way takes long, in a goroutine that stop ends and waits for.
func (a *Allocator) complain(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	uid := a.pod.UID // the loop replaces the pod
	go func() {
		defer close(done)
		for {
			timer := a.clock.NewTimer(patience)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			what, now := a.Waiting(), a.clock.Now()
			if a.complaint.due(what, now) && a.tell(ctx, waitingEvent(a.o.Pod, uid, what)) {
				a.complaint = complaint{what: what, at: now}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// tellTooLarge leaves an Event on the owner when this pod finds no room in its annotations, once in a claim.
func (c *claimer) tellTooLarge(ctx context.Context) {
	if c.came.TooLarge == nil || c.told {
		return
	}
	c.told = c.tell(ctx, store.Event{
		About: c.planned.About(), Type: store.EventWarning, Reason: "AssignmentTooLarge",
		Message: c.came.TooLarge.Detail() + ": pods without an id wait, those that have one keep it",
	})
}

func waitingEvent(pod string, uid types.UID, what string) store.Event {
	return store.Event{
		About: metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid},
		Type:  store.EventWarning, Reason: "WaitingForSlot", Message: "no id yet: idalloc waits for " + what,
	}
}
