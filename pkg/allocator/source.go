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

// sources are the sources that a pod may have, by the value of its label idalloc.dev/assign. The one without a value is for all other pods.
func sources(o source.Options) map[string]source.Source {
	return map[string]source.Source{"": planner.New(o), receipt.ByAgent: central.New(o)}
}

// sourceOf returns the source that this pod has.
func (a *Allocator) sourceOf(pod *metav1.PartialObjectMetadata) source.Source {
	if s, ok := a.sources[pod.Labels[receipt.AssignLabel]]; ok {
		return s
	}
	return a.sources[""]
}

// served is the process as its source sees it.
type served struct{ *Allocator }

var _ source.Process = served{}

// State returns what the process knows of its pod.
func (a served) State() source.State {
	return source.State{
		Pod: a.pod, Owner: a.ref, Locks: a.state, Ends: a.ends, Pauses: a.work.Pauses(), Since: a.work.Since(), Count: a.work.Shown().Count,
	}
}

// ReadPod reads the own pod.
func (a served) ReadPod(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	return a.getPod(ctx)
}

// WriteWaiting writes that the pod waits.
func (a served) WriteWaiting(ctx context.Context) error {
	return a.write(ctx, duty.Lock{State: receipt.Waits, Share: receipt.Nothing()})
}

// Proposed forgets the Lease that the pod waited for if another slot is proposed now, and takes none before from.
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

// see returns what is proposed to the pod, and what this process knows besides.
func (a *Allocator) see() (duty.View, duty.Known) {
	k := duty.Known{Ends: a.ends, Away: a.contact.Away(), Retry: a.wait.until, Again: a.contention.again}
	a.work.Known(&k)
	view := a.source.See(&k)
	return view, k
}

// alarm is when time alone changes what a process knows: the first of the times that each part says.
func (a *Allocator) alarm(now time.Time) time.Time {
	return pace.Soonest(now, a.source.Alarm(now), a.work.Alarm(now), a.contention.until, a.wait.until, a.wait.complains, a.lag.Until())
}
