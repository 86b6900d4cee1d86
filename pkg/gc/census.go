package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// fewVictims is the largest number of missing holders that are read one by one. More of them are confirmed by one list of
// the whole namespace, which costs the API server less.
const fewVictims = 8

// Victim is a dead holder.
type Victim struct {
	// ID is its slot.
	ID int
	// Pod is the name of its pod.
	Pod string
	// Reason says why the holder counts as dead, as a clause such as "its pod is gone".
	Reason string
	// Ended says that the holder's processes are known to have ended, because a kubelet saw each of its containers end.
	// It is false for a pod that is gone, because somebody may have deleted it by force.
	Ended bool
}

// BadReceipt is a live pod's receipt that cannot be read.
type BadReceipt struct {
	Pod    string
	Detail string
}

// Census lists the live pods and the dead holders of an owner.
type Census struct {
	// Live are the owner's live pods, the live pods with a receipt, and all live holders, sorted by name.
	Live []plan.Pod
	// Dead are the holders that were confirmed dead, sorted by id.
	Dead []Victim
	// BadReceipts are the receipts that somebody damaged.
	BadReceipts []BadReceipt
}

// Survey lists the owner's pods, and reads each holder that is not among them. It writes nothing. Read the owner before you
// call Survey, never after. It blocks for two lists and for the reads of missing holders. Errors: *store.ForbiddenError, or
// another error that store.Temporary judges.
func Survey(ctx context.Context, s *store.Store, owner store.Owner) (Census, error) {
	return survey(ctx, counter{s: s, owner: owner, seen: map[string]plan.Pod{}})
}

func survey(ctx context.Context, c counter) (Census, error) {
	for _, selector := range []string{c.owner.Selector, assignment.HoldersSelector(c.owner.String())} {
		owned := selector == c.owner.Selector
		err := c.each(ctx, selector, owned, func(pod metav1.Object) { c.add(pod, owned) })
		if err != nil {
			return Census{}, err
		}
	}
	if err := c.confirm(ctx); err != nil {
		return Census{}, err
	}
	return c.census(), nil
}

// Inspect is Survey for people who look: it reads the pods whole, which costs the API server more, and calls show with each pod
// that it meets, also with dead ones. It may show a pod twice. owned says that the owner's selector matches the pod.
func Inspect(ctx context.Context, s *store.Store, owner store.Owner, show func(pod *unstructured.Unstructured, owned bool)) (Census, error) {
	return survey(ctx, counter{s: s, owner: owner, seen: map[string]plan.Pod{}, show: show, finished: map[string]*unstructured.Unstructured{}})
}

// Guess returns the live pods according to two watches: owned has the pods that the owner's selector matches, and labelled
// the pods with a receipt. It sends no request, so its result may be out of date, and it does not confirm holders that are
// in neither. Use it to estimate whether a plan is worth its lists, not to decide anything.
func Guess(s *store.Store, owner store.Owner, owned, labelled []*metav1.PartialObjectMetadata) []plan.Pod {
	c := counter{s: s, owner: owner, seen: make(map[string]plan.Pod, len(owned))}
	for _, pod := range owned {
		c.add(pod, true)
	}
	for _, pod := range labelled {
		c.add(pod, false)
	}
	return c.census().Live
}

type counter struct {
	s     *store.Store
	owner store.Owner
	seen  map[string]plan.Pod
	dead  []Victim
	bad   []BadReceipt
	// show is shown each pod, which is then read whole; nil: nobody looks.
	show func(pod *unstructured.Unstructured, owned bool)
	// finished are the dead pods that were listed for show, by name.
	finished map[string]*unstructured.Unstructured
}

// each lists the live pods that the selector matches.
func (c *counter) each(ctx context.Context, selector string, owned bool, do func(metav1.Object)) error {
	if c.show == nil {
		o := metav1.ListOptions{LabelSelector: selector, FieldSelector: store.LivePods}
		return c.s.EachPod(ctx, c.owner.Namespace, o, func(pod *metav1.PartialObjectMetadata) { do(pod) })
	}
	return c.s.EachFullPod(ctx, c.owner.Namespace, metav1.ListOptions{LabelSelector: selector}, func(pod *unstructured.Unstructured) {
		c.show(pod, owned)
		if Finished(status(pod, "phase")) {
			c.finished[pod.GetName()] = pod
		} else {
			do(pod)
		}
	})
}

func (c *counter) add(meta metav1.Object, owned bool) {
	name := meta.GetName()
	if c.seen[name].UID == string(meta.GetUID()) {
		return
	}
	pod, err := PodOf(c.owner, meta, owned, c.s.Clock.Now())
	if err != nil {
		c.bad = append(c.bad, BadReceipt{Pod: name, Detail: err.Error()})
	}
	c.seen[name] = pod
}

// confirm finds out whether the holders live that the lists did not show.
func (c *counter) confirm(ctx context.Context) error {
	var missing []int
	for _, id := range c.owner.Record.State.Slots.IDs() {
		if !c.alive(id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > fewVictims && c.show == nil {
		// This list has the live pods of the whole namespace, whatever their labels. A holder that is not in it is dead.
		here := make(map[string]metav1.Object, len(missing))
		for _, id := range missing {
			here[c.owner.Record.State.Slots[id]] = nil
		}
		err := c.each(ctx, "", false, func(pod metav1.Object) {
			if _, wanted := here[pod.GetName()]; wanted {
				here[pod.GetName()] = pod
			}
		})
		if err != nil {
			return err
		}
		for _, id := range missing {
			c.countHolder(id, here[c.owner.Record.State.Slots[id]], Victim{Reason: "its pod is gone, Succeeded or Failed"})
		}
		return nil
	}
	for _, id := range missing {
		pod, why, err := c.readHolder(ctx, c.owner.Record.State.Slots[id])
		if err != nil {
			return err
		}
		c.countHolder(id, pod, why)
	}
	return nil
}

// alive reports whether the lists have shown the holder of id.
func (c *counter) alive(id int) bool {
	pod, ok := c.seen[c.owner.Record.State.Slots[id]]
	return ok && c.owner.Names(id, pod.Name, types.UID(pod.UID))
}

// countHolder counts the holder of id as live or dead. pod is the live pod of the holder's name. It is nil if there is none,
// and then why has the reason.
func (c *counter) countHolder(id int, pod metav1.Object, why Victim) {
	name := c.owner.Record.State.Slots[id]
	switch {
	case pod == nil:
		c.dead = append(c.dead, Victim{ID: id, Pod: name, Reason: why.Reason, Ended: why.Ended})
	case !c.owner.Names(id, name, pod.GetUID()):
		c.add(pod, false)
		c.dead = append(c.dead, Victim{ID: id, Pod: name, Reason: fmt.Sprintf("another pod has its name now (UID %s)", pod.GetUID())})
	default:
		c.add(pod, false)
	}
}

// readHolder reads one pod. If the pod is dead, it returns nil and the reason.
func (c *counter) readHolder(ctx context.Context, name string) (metav1.Object, Victim, error) {
	u, listed := c.finished[name]
	if !listed {
		var err error
		u, err = c.s.GetFullPod(ctx, c.owner.Namespace, name)
		if errors.Is(err, store.ErrGone) {
			return nil, Victim{Reason: "its pod is gone"}, nil
		}
		if err != nil {
			return nil, Victim{}, err
		}
		if c.show != nil {
			c.show(u, false)
		}
	}
	if phase := status(u, "phase"); Finished(phase) {
		if reason := status(u, "reason"); reason != "" {
			phase += " (" + reason + ")"
		}
		return nil, Victim{Reason: "its pod is " + phase, Ended: !byPodGC(u) && allTerminated(u)}, nil
	}
	return u, Victim{}, nil
}

func status(pod *unstructured.Unstructured, field string) string {
	text, _, _ := unstructured.NestedString(pod.Object, "status", field)
	return text
}

// Finished reports whether a pod in this phase is dead. store.LivePods selects the others.
func Finished(phase string) bool { return phase == "Succeeded" || phase == "Failed" }

// byPodGC reports whether Kubernetes' pod garbage collector declared the pod Failed because its node is gone. No kubelet
// confirmed that, so the pod's processes may still run.
func byPodGC(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "DisruptionTarget" && m["reason"] == "DeletionByPodGC" && m["status"] == "True" {
			return true
		}
	}
	return false
}

// unknownEnd is the reason that a kubelet gives for a container that it could not find any more. It did not see it end.
const unknownEnd = "ContainerStatusUnknown"

// allTerminated reports whether, according to a kubelet, every container of the pod has ended. A pod can be Failed without
// that. If somebody else declares it Failed, the containers' states stay as they were. If a kubelet rejects it, there are no
// states at all. A kubelet may do so with a running pod after its own restart.
func allTerminated(pod *unstructured.Unstructured) bool {
	ended := map[string]bool{}
	for _, field := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, s := range statuses {
			m, _ := s.(map[string]any)
			terminated, found, _ := unstructured.NestedMap(m, "state", "terminated")
			if !found || terminated["reason"] == unknownEnd {
				return false
			}
			name, _ := m["name"].(string)
			ended[name] = true
		}
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, c := range containers {
			if m, ok := c.(map[string]any); ok {
				if name, _ := m["name"].(string); !ended[name] {
					return false
				}
			}
		}
	}
	return len(ended) > 0
}

// Ended returns the slots of those dead holders whose processes are known to have ended.
func (c Census) Ended() map[int]bool {
	ended := make(map[int]bool, len(c.Dead))
	for _, v := range c.Dead {
		if v.Ended {
			ended[v.ID] = true
		}
	}
	return ended
}

func (c *counter) census() Census {
	out := Census{Live: make([]plan.Pod, 0, len(c.seen)), Dead: c.dead, BadReceipts: c.bad}
	for _, pod := range c.seen {
		out.Live = append(out.Live, pod)
	}
	slices.SortFunc(out.Live, func(a, b plan.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
