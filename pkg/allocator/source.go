package allocator

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/central"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/planner"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
)

// sources returns all possible sources, by the value of the pod's label idalloc.dev/assign. The one with the empty value serves all other pods.
func sources(o source.Options) map[string]source.Source {
	return map[string]source.Source{"": planner.New(o), receipt.ByAgent: central.New(o)}
}

// sourceOf returns the source of this pod.
func (a *Allocator) sourceOf(pod *metav1.PartialObjectMetadata) source.Source {
	if s, ok := a.sources[pod.Labels[receipt.AssignLabel]]; ok {
		return s
	}
	return a.sources[""]
}

// served shows the process to its source.
type served struct{ *Allocator }

var _ source.Process = served{}

// State returns what the process knows about its pod.
func (a served) State() source.State {
	return source.State{
		Pod: a.pod, Owner: a.ref, Locks: a.state, Ends: a.ends, Pauses: a.work.Pauses(), Since: a.work.Since(), Count: a.work.Shown().Count,
	}
}

// ReadPod reads this pod.
func (a served) ReadPod(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	return a.getPod(ctx)
}

// WriteWaiting writes the receipt of a waiting pod.
func (a served) WriteWaiting(ctx context.Context) error {
	return a.write(ctx, duty.Lock{State: receipt.Waits, Share: receipt.Nothing()})
}

// Proposed forgets the Lease that the pod waited for if another slot is proposed now. The process takes no slot before from.
func (a served) Proposed(id int, from time.Time) time.Time {
	c := &a.contention
	if c.lease.Holder != "" && id != c.lease.ID {
		*c = contention{backoff: c.backoff}
	}
	if from.After(c.again) {
		c.again = from
	}
	return c.again
}

// see returns what is proposed to the pod, and what else this process knows.
func (a *Allocator) see() (duty.View, duty.Known) {
	k := duty.Known{Ends: a.ends, Away: a.contact.Away(), Retry: a.wait.until, Again: a.contention.again}
	a.work.Known(&k)
	view := a.source.See(&k)
	return view, k
}

// alarm returns when time alone changes what the process knows: the earliest alarm of all parts.
func (a *Allocator) alarm(now time.Time) time.Time {
	return pace.Soonest(now, a.source.Alarm(now), a.work.Alarm(now), a.contention.until, a.wait.until, a.wait.complains, a.lag.Until())
}
