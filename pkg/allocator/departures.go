package allocator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/pkg/watch"
)

// departures knows since when pods have been Terminating, by what this process has itself heard and by its own clock. So it knows
// which pods are lost, whatever the API server's clock or this machine's wall clock shows.
type departures struct {
	now  func() time.Duration // a clock that goes on in suspend
	pods map[string]departure // by UID
}

// departure is a Terminating pod.
type departure struct {
	since time.Duration
	// pod is as this process last saw it.
	pod plan.Pod
	// counted says that the pod was lost when a plan was made last.
	counted bool
}

// note takes in a Terminating pod that this process has seen.
func (d *departures) note(pod plan.Pod) {
	if d.pods == nil {
		d.pods = map[string]departure{}
	}
	seen, known := d.pods[pod.UID]
	if !known {
		seen.since = d.now()
	}
	seen.pod = pod
	d.pods[pod.UID] = seen
}

// mark takes in the pods of a plan, and notes on them which are lost.
func (d *departures) mark(pods []plan.Pod) {
	for i := range pods {
		if !pods[i].Terminating {
			continue
		}
		d.note(pods[i])
		seen := d.pods[pods[i].UID]
		seen.counted = d.lost(pods[i].UID)
		d.pods[pods[i].UID] = seen
		pods[i].Lost = seen.counted
	}
}

// forget drops the pods that are gone. pods are all that live.
func (d *departures) forget(pods []plan.Pod) {
	live := make(map[string]bool, len(pods))
	for i := range pods {
		live[pods[i].UID] = true
	}
	for uid := range d.pods {
		if !live[uid] {
			delete(d.pods, uid)
		}
	}
}

// lost reports whether the pod with this UID is lost.
func (d *departures) lost(uid string) bool {
	in, ok := d.lostIn(uid)
	return ok && in <= 0
}

// lostIn returns how long it is until the pod is lost; ok is false if it cannot be.
func (d *departures) lostIn(uid string) (in time.Duration, ok bool) {
	seen, known := d.pods[uid]
	if !known {
		return 0, false
	}
	return gc.LostIn(seen.pod, d.now()-seen.since)
}

// next returns how long it is until the next pod is lost, of those that were not lost in the last plan. It is 0 if one became so since
// then. ok is false if there is none.
func (d *departures) next() (in time.Duration, ok bool) {
	for uid, seen := range d.pods {
		left, may := d.lostIn(uid)
		if left = max(0, left); may && !seen.counted && (!ok || left < in) {
			in, ok = left, true
		}
	}
	return in, ok
}

// hear takes in what streams say of pods that are being deleted.
func (d *departures) hear(owner store.Owner, wall time.Time, streams ...*watch.PodStream) {
	for _, s := range streams {
		for _, pod := range s.Objects() {
			d.hearOf(owner, wall, pod)
		}
	}
}

func (d *departures) hearOf(owner store.Owner, wall time.Time, pod *metav1.PartialObjectMetadata) {
	if pod.DeletionTimestamp == nil {
		return
	}
	p, _ := gc.PodOf(owner, pod, true, wall) // a pod whose receipt cannot be read cannot be lost
	d.note(p)
}
