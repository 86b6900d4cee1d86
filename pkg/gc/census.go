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

// fewVictims is how many victims are confirmed one by one; more are confirmed by one list of the
// namespace, which costs the API server less.
const fewVictims = 8

// Victim is a holder that is dead.
type Victim struct {
	ID     int
	Pod    string
	Reason string
	// Ended says that its processes are known to have ended, because a kubelet saw each of its containers end. A pod that
	// is gone may have been deleted by force.
	Ended bool
}

// BadReceipt is a live pod's receipt that cannot be read.
type BadReceipt struct {
	Pod    string
	Detail string
}

// Census is who lives, as seen after the owner was read.
type Census struct {
	// Live are the owner's live pods, the live pods with a receipt, and every live holder, by name.
	Live []plan.Pod
	// Dead are the holders that were confirmed dead, by id.
	Dead []Victim
	// BadReceipts are receipts that somebody damaged.
	BadReceipts []BadReceipt
}

// Survey lists the owner's pods and confirms each holder that is not among them. Call it after the
// owner was read, never before. It blocks for two lists and the confirmations.
func Survey(ctx context.Context, s *store.Store, owner store.Owner) (Census, error) {
	c := counter{s: s, owner: owner, seen: map[string]plan.Pod{}}
	for _, selector := range []string{owner.Selector, assignment.HoldersSelector(owner.String())} {
		if err := c.list(ctx, selector, selector == owner.Selector); err != nil {
			return Census{}, err
		}
	}
	if err := c.confirm(ctx); err != nil {
		return Census{}, err
	}
	return c.census(), nil
}

// Guess counts the live pods from what watches said of the owner's pods and of those with a receipt. It asks
// nobody, so it may be out of date, and a holder in neither is not confirmed: it tells whether a plan
// is worth its lists, and nothing is decided by it.
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
}

func (c *counter) list(ctx context.Context, selector string, owned bool) error {
	o := metav1.ListOptions{LabelSelector: selector, FieldSelector: store.LivePods}
	return c.s.EachPod(ctx, c.owner.Namespace, o, func(pod *metav1.PartialObjectMetadata) { c.add(pod, owned) })
}

func (c *counter) add(meta *metav1.PartialObjectMetadata, owned bool) {
	if known, ok := c.seen[meta.Name]; ok && known.UID == string(meta.UID) {
		return
	}
	pod, err := PodOf(c.owner, meta, owned, c.s.Clock.Now())
	if err != nil {
		c.bad = append(c.bad, BadReceipt{Pod: meta.Name, Detail: err.Error()})
	}
	c.seen[meta.Name] = pod
}

// confirm reads each holder that the lists did not show.
func (c *counter) confirm(ctx context.Context) error {
	var missing []int
	for _, id := range c.owner.Record.State.Slots.IDs() {
		if !c.alive(id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > fewVictims {
		// The whole namespace, whatever the labels; a holder that is not in it is dead.
		here := make(map[string]*metav1.PartialObjectMetadata, len(missing)) // of their names
		for _, id := range missing {
			here[c.owner.Record.State.Slots[id]] = nil
		}
		err := c.s.EachPod(ctx, c.owner.Namespace, metav1.ListOptions{FieldSelector: store.LivePods}, func(pod *metav1.PartialObjectMetadata) {
			if _, wanted := here[pod.Name]; wanted {
				here[pod.Name] = pod
			}
		})
		if err != nil {
			return err
		}
		for _, id := range missing {
			c.judge(id, here[c.owner.Record.State.Slots[id]], Victim{Reason: "its pod is gone, Succeeded or Failed"})
		}
		return nil
	}
	for _, id := range missing {
		pod, why, err := c.look(ctx, c.owner.Record.State.Slots[id])
		if err != nil {
			return err
		}
		c.judge(id, pod, why)
	}
	return nil
}

// alive reports whether the lists showed the holder of id.
func (c *counter) alive(id int) bool {
	pod, ok := c.seen[c.owner.Record.State.Slots[id]]
	return ok && c.owner.Names(id, pod.Name, types.UID(pod.UID))
}

// judge counts the holder of id as live or dead; pod is nil if there is no live pod of that name, and
// why says so then.
func (c *counter) judge(id int, pod *metav1.PartialObjectMetadata, why Victim) {
	name := c.owner.Record.State.Slots[id]
	switch {
	case pod == nil:
		c.dead = append(c.dead, Victim{ID: id, Pod: name, Reason: why.Reason, Ended: why.Ended})
	case !c.owner.Names(id, pod.Name, pod.UID):
		c.add(pod, false)
		c.dead = append(c.dead, Victim{ID: id, Pod: name, Reason: fmt.Sprintf("another pod has its name now (UID %s)", pod.UID)})
	default:
		c.add(pod, false)
	}
}

// look reads one pod. It returns nil and the reason if the pod is dead.
func (c *counter) look(ctx context.Context, name string) (*metav1.PartialObjectMetadata, Victim, error) {
	u, err := c.s.GetFullPod(ctx, c.owner.Namespace, name)
	if errors.Is(err, store.ErrGone) {
		return nil, Victim{Reason: "its pod is gone"}, nil
	}
	if err != nil {
		return nil, Victim{}, err
	}
	status := func(field string) string {
		text, _, _ := unstructured.NestedString(u.Object, "status", field)
		return text
	}
	if phase := status("phase"); phase == "Succeeded" || phase == "Failed" {
		if reason := status("reason"); reason != "" {
			phase += " (" + reason + ")"
		}
		return nil, Victim{Reason: "its pod is " + phase, Ended: !byPodGC(u) && allTerminated(u)}, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), CreationTimestamp: u.GetCreationTimestamp(),
		DeletionTimestamp: u.GetDeletionTimestamp(), Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		OwnerReferences: u.GetOwnerReferences(),
	}}, Victim{}, nil
}

// byPodGC reports whether the pod was declared Failed because its node is gone, without a word of a
// kubelet: its processes may run on.
func byPodGC(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "DisruptionTarget" && m["reason"] == "DeletionByPodGC" && m["status"] == "True" {
			return true
		}
	}
	return false
}

// unknownEnd is the reason that a kubelet gives for a container that it did not find any more: of its end it knows nothing.
const unknownEnd = "ContainerStatusUnknown"

// allTerminated reports whether a kubelet has said of every container that it saw it end. Who declares a pod dead without
// that word has none: others leave the containers' state as it was, and a kubelet that rejects a pod, as it does with one that
// it finds running after its own restart, reports no containers at all.
func allTerminated(pod *unstructured.Unstructured) bool {
	ended := map[string]bool{}
	for _, field := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, s := range statuses {
			m, ok := s.(map[string]any)
			if !ok {
				return false
			}
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

// Ended returns the slots whose dead holders' processes are known to have ended.
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
	slices.SortFunc(out.Dead, func(a, b Victim) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
