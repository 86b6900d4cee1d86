package allocator

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// hear reads the news from streams, timers and goroutines.
func (a *Allocator) hear() {
	a.state = a.work.Hear(a.state)
	a.hearFence()
	a.contact.Renewals(a.lease.Refused())
	a.contact.NoteStale()
	a.source.Hear()
	if stream := a.contact.Pod(); stream != nil {
		a.hearPod(stream.Get(a.o.Pod))
	}
	if a.source.Facts().Known {
		a.work.FollowRest(a.state, a.source.Shared)
	}
	a.source.Consider()
}

// hearPod looks for changes of this pod by others. The stream lags behind this process's own writes.
func (a *Allocator) hearPod(pod *metav1.PartialObjectMetadata, there bool) {
	uid := types.UID("")
	if there {
		uid = pod.UID
	}
	if uid != a.o.PodUID {
		if a.lag.Asks(string(uid), a.clock.Now()) {
			a.state = a.state.Lost()
		}
		return
	}
	a.lag = contact.Lag{}
	switch {
	case !contact.Newer(pod.ResourceVersion, a.pod.ResourceVersion):
	case pod.Annotations[receipt.Key] != a.pod.Annotations[receipt.Key] || labelsOf(pod) != labelsOf(a.pod):
		if a.state = a.state.Lost(); a.wrote != "" && !slices.Contains(a.failed, pod.Annotations[receipt.Key]) {
			a.hurt() // a late write may have restored this process's bytes meanwhile, and a read would not show the gap
			a.pod = pod
			a.heard()
		}
	default:
		a.pod = pod
		a.heard()
	}
}

// hearFence ends the id if this pod's Lease has expired.
func (a *Allocator) hearFence() {
	if !a.lease.Over() {
		return
	}
	why := a.lease.Why()
	if a.lease.Silent() {
		a.contact.Lost(errors.New(why))
	}
	works := !a.state.Working.Empty()
	if works {
		a.happened.Tell(event.Fenced{ID: a.state.Working.ID, Token: a.work.Token(), FenceAfter: a.o.FenceAfter, Reason: why})
	}
	a.work.Fence(works)
	a.state = a.state.Fenced()
	a.tell()
	a.lease.Forget()
	// The work has that long to stop. Until then its locks stay.
	a.wait.after(a.clock.Now(), a.o.FenceLead+assignment.StopGrace, "its work to stop after a fence: "+why)
}
