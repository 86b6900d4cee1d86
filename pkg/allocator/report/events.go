package report

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
)

const (
	// timeout bounds the writing of an Event.
	timeout = 5 * time.Second
	// again is the least time between two Events of one pod about why it waits, and between two about partitions with the same reason.
	again = time.Minute
)

// Events is an observer that writes Kubernetes Events for people who watch the owner or this pod. It writes them in goroutines, so that the loop does not
// wait for them.
type Events struct {
	store     *store.Store
	log       *logr.Logger
	namespace string
	pod       metav1.OwnerReference
	// start starts a goroutine.
	start func(func(context.Context))

	// mu guards the fields below. It is not held during a request.
	mu sync.Mutex
	// full: an Event has reported an owner without room since this pod had a slot.
	full bool
	// claiming is when the present claim began. complaint is the last Event about why this pod waits. complained: there was one in this claim.
	claiming   time.Time
	complaint  complaint
	complained bool
	// told is when the last Event of each reason about partitions or foreign pods was written, and the last one about each foreign pod.
	told map[string]time.Time
}

// NewEvents returns an observer that writes the Events of a pod. start starts a goroutine whose context ends with the loop.
func NewEvents(s *store.Store, log *logr.Logger, namespace string, pod metav1.OwnerReference, start func(func(context.Context))) *Events {
	return &Events{store: s, log: log, namespace: namespace, pod: pod, start: start, told: map[string]time.Time{}}
}

// Observe implements event.Observer.
func (o *Events) Observe(e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := e.(type) {
	case event.Damaged:
		kind := kubeevent.Warning
		if e.Expected {
			kind = kubeevent.Normal
		}
		about := e.About
		if about.Name == "" { // the owner does not exist
			about = o.pod
		}
		o.leave(kubeevent.Event{About: about, Type: kind, Reason: e.Reason, Message: e.Detail}, nil)
	case event.NoRoom:
		if !o.full {
			o.full = true
			o.leave(kubeevent.Event{
				// Event: the workload's annotations have no room for all ids; the message says how many replicas fit. Pods that have an id keep it, the
				// others wait.
				// Do: see [the size limit](operations.md#the-size-limit).
				About: e.About, Type: kubeevent.Warning, Reason: "AssignmentTooLarge",
				Message: e.Detail + ": pods without an id wait, those that have one keep it",
			}, func() { o.full = false })
		}
	case event.Planned:
		o.foreign(e)
	case event.Claiming:
		o.claiming, o.complained = o.store.Clock.Now(), false
	case event.StillWaiting:
		o.complain(e.Reason)
	case event.Taken:
		o.full = false
		o.relieve(e.ID)
	case event.Given:
		if e.Requester != "" {
			o.leave(kubeevent.Event{
				// Event: Normal: in a rolling update, a pod gave its id to a pod of the current revision. The message names both. In a fast update, only
				// the first hand-over of each minute has an Event.
				About: e.About, Type: kubeevent.Normal, Reason: "SlotHandedOver",
				Message: fmt.Sprintf("pod %s handed id %d over to pod %s", o.pod.Name, e.ID, e.Requester),
			}, nil)
		}
	case event.Lost:
		// Event: on a pod: its id is gone, whether or not its work had stopped; the message says why. The pod claims another slot.
		// Do: as for the log message `id lost`.
		o.leave(kubeevent.Event{About: o.pod, Type: kubeevent.Warning, Reason: "IDLost", Message: fmt.Sprintf("id %d is lost: %s", e.ID, e.Reason)}, nil)
	case event.Unrenewed:
		// Event: on a pod in strict mode: the API server refuses the renewals of its Lease; the message quotes it. Unless one is accepted in time, the pod
		// withdraws its id and stops its work.
		// Do: see [the API server refuses renewals](outages.md#the-api-server-refuses-renewals).
		o.leave(kubeevent.Event{About: o.pod, Type: kubeevent.Warning, Reason: "RenewalRefused", Message: "the Lease is not renewed: " + e.Reason}, nil)
	default:
		o.partitions(e)
	}
}

// foreign reports, once for each, pods of other workloads that lock a slot of this one.
func (o *Events) foreign(e event.Planned) {
	var pods, keys []string
	for _, c := range e.Foreign {
		key := "pod " + c.Pod
		if _, told := o.told[key]; !told {
			pods, keys = append(pods, fmt.Sprintf("pod %s (id %d)", c.Pod, c.ID)), append(keys, key)
		}
	}
	if len(pods) > 0 {
		// Event: a pod that is not the workload's locks an id of it: it was relabelled, or another workload's pod has a receipt for this one. The
		// message names the pod and the id, which no other pod gets as long as that one lives. Other pods get the other ids.
		// Do: find out what made or relabelled the pod, and delete it when nothing acts in it any more.
		o.leaveSeldom(kubeevent.Event{About: e.About, Type: kubeevent.Warning, Reason: "SlotLockedByForeignPod", Message: "pods that are not the workload's " +
			"lock ids of it, and no other pod gets these: find out what made or relabelled them, and delete them when nothing works in them any more: " + strings.Join(pods, ", ")}, keys...)
	}
}

// partitions writes Events about partitions.
func (o *Events) partitions(e event.Event) {
	switch e := e.(type) {
	case event.PartitionsInForce:
		o.leaveSeldom(kubeevent.Event{
			// Event: Normal: another number of partitions or another strategy is in force. The message says both, and what was in force before.
			About: e.About, Type: kubeevent.Normal, Reason: "PartitionsInForce", Message: e.New.String() + " are in force; before: " + e.Old.String(),
		})
	case event.FailedOver:
		const most = 3 // the log of this pod has all of them
		parts := make([]string, 0, len(e.From))
		for _, f := range e.From[:min(most, len(e.From))] {
			parts = append(parts, f.String())
		}
		if more := len(e.From) - most; more > 0 {
			parts = append(parts, fmt.Sprintf("and so did those of %d more ids", more))
		}
		// Event: no pod held an id for longer than `idalloc.dev/partition-failover-after`, or with `primary` no pod could take it soon. The message says
		// which ids got its partitions, and after what time.
		// Do: see why the id has no pod.
		o.leaveSeldom(kubeevent.Event{About: e.About, Type: kubeevent.Warning, Reason: "PartitionsFailedOver", Message: strings.Join(parts, "; ")})
	case event.Paused:
		if e.Paused && e.For > 0 {
			// Event: on a pod: the program of `idalloc run`, `RunPartitions` or `Start` ended three times in a row, or more, each time soon after its
			// start. Other pods work on the partitions until the time in the message is over.
			// Do: read the program's log.
			o.leaveSeldom(kubeevent.Event{About: o.pod, Type: kubeevent.Warning, Reason: "PartitionsPaused", Message: fmt.Sprintf(
				"the program failed %d times in a row: for %s other pods get the partitions of id %d", e.Failed, e.For.Round(time.Second), e.ID)})
		}
	case event.PartitionsHeldUp:
		if !e.Unannounced {
			o.leaveSeldom(kubeevent.Event{About: e.About, Type: kubeevent.Warning, Reason: e.Reason, Message: e.Detail})
		}
	}
}

// leaveSeldom is leave, at most once a minute for each reason. Other processes' Events of the same minute have the same name, so that the API server keeps
// one of them. It also records the time under the keys.
func (o *Events) leaveSeldom(e kubeevent.Event, keys ...string) {
	now := o.store.Clock.Now()
	if last, told := o.told[e.Reason]; told && now.Sub(last) < again {
		return
	}
	keys = append(keys, e.Reason)
	for _, key := range keys {
		o.told[key] = now
	}
	o.leave(e, func() {
		for _, key := range keys {
			delete(o.told, key)
		}
	})
}

// complain writes an Event on the pod about why it waits.
func (o *Events) complain(what string) {
	before, next := o.complaint, complaint{what: what, at: o.store.Clock.Now()}
	if before.due(what, next.at) {
		o.complaint, o.complained = next, true
		// Event: on a pod: it has waited for an id for half a minute; the message says what for.
		// Do: see [a pod waits for a slot](operations.md#a-pod-waits-for-a-slot).
		o.leave(kubeevent.Event{About: o.pod, Type: kubeevent.Warning, Reason: "WaitingForSlot", Message: "no id yet: idalloc waits for " + what},
			func() { o.complaint, o.complained = before, false })
	}
}

// relieve writes an Event on the pod that it has an id, if an Event has reported that it waits.
func (o *Events) relieve(id int) {
	if o.complained {
		o.complained = false
		// Event: Normal: on a pod: it has an id after a long wait. The message has the time and the reason.
		o.leave(kubeevent.Event{About: o.pod, Type: kubeevent.Normal, Reason: "SlotTaken", Message: fmt.Sprintf(
			"got id %d after %s; before, idalloc waited for %s", id, o.store.Clock.Since(o.claiming).Round(time.Second), o.complaint.what)}, nil)
	}
}

// leave writes an Event in a goroutine, as best effort: a failure is logged, and failed is called if it is not nil.
func (o *Events) leave(e kubeevent.Event, failed func()) {
	e.Namespace, e.Reporter = o.namespace, o.pod.Name
	o.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err := o.store.Tell(ctx, e)
		if err == nil {
			return
		}
		o.log.V(1).Info("the event could not be written", "reason", err.Error())
		if failed != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			failed()
		}
	})
}

// complaint is the content and time of this pod's last Event about its waiting.
type complaint struct {
	what string
	at   time.Time
}

// due reports whether to write now that the pod waits for what: once, and again when the reason changes, but seldom.
func (c complaint) due(what string, now time.Time) bool {
	return what != "" && withoutNumbers(what) != withoutNumbers(c.what) && (c.what == "" || now.Sub(c.at) >= again)
}

// withoutNumbers returns the text without its numbers, and without the units of times. In a large workload the number of live pods changes all the time,
// while the reason to wait stays the same.
func withoutNumbers(text string) string {
	number := false
	return strings.Map(func(r rune) rune {
		if number = (r >= '0' && r <= '9') || (number && strings.ContainsRune("hms", r)); number {
			return -1
		}
		return r
	}, text)
}
