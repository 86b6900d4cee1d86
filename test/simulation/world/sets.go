package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// podsOf returns a controller's pods that are neither dead nor Terminating, and lets go of those that were relabelled.
func (w *World) podsOf(v *server.Version) []*server.Version {
	var active []*server.Version
	for _, pod := range w.Server.Objects(object.Pods) {
		if by := object.Controller(pod.Object); by != object.UID(v.Object) {
			continue
		}
		if !InWorkload(pod.Object) {
			w.Server.Change(object.Pods, pod.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) { delete(object.Need(o, object.Metadata), "ownerReferences") })
			continue
		}
		if !object.Terminating(pod.Object) && !object.Ended(pod.Object) {
			active = append(active, pod)
		}
	}
	return active
}

func isReady(v *server.Version) bool { return object.Text(v.Object, "status", "ready") == "True" }

// reconcileSet makes a ReplicaSet's or a Job's number of pods right.
func (w *World) reconcileSet(v *server.Version, prefix string) {
	active := w.podsOf(v)
	n := v.Count()
	indexes := w.missing(active, n)
	for i := range n - len(active) {
		w.createPod(v, prefix+"-"+strconv.Itoa(w.NextNumber()), indexes[i])
	}
	if len(active) > n {
		slices.SortFunc(active, rank)
		for _, pod := range active[:len(active)-n] {
			w.Server.DeletePod(pod.Name, w.Profile.Grace)
		}
	}
	ready := 0
	for _, pod := range active {
		if isReady(pod) {
			ready++
		}
	}
	w.Server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) {
		status := object.Need(o, "status")
		if v.Kind.Resource == object.Jobs {
			status["active"], status["ready"], status["terminating"] = int64(len(active)), int64(ready), int64(w.ending(v))
			return
		}
		status["replicas"], status["readyReplicas"], status["availableReplicas"] = int64(len(active)), int64(ready), int64(ready)
		if w.CountsEnding {
			status["terminatingReplicas"] = int64(w.ending(v))
		}
	})
}

// ending counts a controller's Terminating pods.
func (w *World) ending(v *server.Version) (n int) {
	for _, pod := range w.Server.Objects(object.Pods) {
		if object.Controller(pod.Object) == object.UID(v.Object) && object.Terminating(pod.Object) && !object.Ended(pod.Object) {
			n++
		}
	}
	return n
}

// missing are the completion indexes below n that no pod has, or n empty ones where pods have none.
func (w *World) missing(active []*server.Version, n int) []string {
	if !w.Profile.Indexed {
		return make([]string, n)
	}
	has := map[string]bool{}
	for _, pod := range active {
		has[object.Annotation(pod.Object, kinds.CompletionIndexLabel)] = true
	}
	var out []string
	for i := 0; len(out) < n; i++ { // after a scale-down the pods with the highest indexes need not be those that went
		if index := strconv.Itoa(i); !has[index] {
			out = append(out, index)
		}
	}
	return out
}

// rank puts the pods first that a ReplicaSet ends first.
func rank(a, b *server.Version) int {
	order := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(order(object.Text(a.Object, "spec", "nodeName") != ""), order(object.Text(b.Object, "spec", "nodeName") != "")),
		cmp.Compare(order(isReady(a)), order(isReady(b))),
		cmp.Compare(cost(a), cost(b)),
		cmp.Compare(object.Text(b.Object, object.Metadata, "creationTimestamp"), object.Text(a.Object, object.Metadata, "creationTimestamp")),
		cmp.Compare(a.Name, b.Name),
	)
}

func cost(v *server.Version) int {
	n, err := strconv.Atoi(object.Annotation(v.Object, costKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *World) createPod(v *server.Version, podName, index string) {
	if w.Quota || w.Server.Get(object.Pods, podName) != nil {
		w.After(w.Dice("quota", podName, strconv.Itoa(w.Lines)).Span(time.Second, 5*time.Second), func() { w.reconcileSoon(v.Kind.Resource, v.Name) })
		return
	}
	k := object.KindOf(object.Pods)
	podLabels := object.Object{AppLabel: OwnerName}
	maps.Copy(podLabels, object.At(v.Object, "spec", "template", object.Metadata, labels))
	if v.Kind.Resource == object.StatefulSets {
		podLabels["controller-revision-hash"] = strconv.Itoa(Template(v.Object))
	}
	annotations := maps.Clone(object.At(v.Object, "spec", "template", object.Metadata, "annotations"))
	if index != "" {
		podLabels[kinds.CompletionIndexLabel], annotations[kinds.CompletionIndexLabel] = index, index
	}
	pod := object.Object{
		object.Metadata: object.Object{"name": podName, labels: podLabels, "annotations": annotations, "ownerReferences": object.ControlledBy(v.Kind, v.Object)},
		"spec": object.Object{
			"version": int64(Template(v.Object)), "containers": []any{object.Object{"name": container}}, "terminationGracePeriodSeconds": int64(w.Profile.Grace / time.Second),
		},
		"status": object.Object{"phase": "Pending", "ready": "False"},
	}
	Gate(pod)
	w.Server.Put(k, pod, server.Writer{Manager: ControllerManager})
}

// reconcileStatefulSet keeps the names 0 to n-1, all at once (podManagementPolicy Parallel) or in order (OrderedReady), and replaces one
// changed pod at a time.
func (w *World) reconcileStatefulSet(v *server.Version) {
	n := v.Count()
	all := true
	var outdated *server.Version
	for i := range n {
		podName := fmt.Sprintf("%s-%d", v.Name, i)
		pod := w.Server.Get(object.Pods, podName)
		if pod == nil {
			if all || !w.Profile.Ordered {
				w.createPod(v, podName, "")
			}
			all = false
			continue
		}
		switch {
		case object.Terminating(pod.Object):
			all = false
			continue
		case object.Ended(pod.Object):
			w.Server.DeletePod(podName, w.Profile.Grace)
			w.Server.Remove(w.Server.Get(object.Pods, podName))
			all = false
			continue
		}
		all = all && (isReady(pod) || MadeFrom(pod) != Template(v.Object))
		if MadeFrom(pod) != Template(v.Object) {
			outdated = pod
		}
	}
	if all && outdated != nil {
		w.Server.DeletePod(outdated.Name, w.Profile.Grace)
	}
	var extra []*server.Version
	for _, pod := range w.podsOf(v) {
		var i int
		if _, err := fmt.Sscanf(pod.Name, v.Name+"-%d", &i); err == nil && i >= n {
			extra = append(extra, pod)
		}
	}
	slices.SortFunc(extra, func(a, b *server.Version) int {
		return cmp.Or(cmp.Compare(len(b.Name), len(a.Name)), cmp.Compare(b.Name, a.Name))
	})
	for i, pod := range extra {
		if i == 0 || !w.Profile.Ordered {
			w.Server.DeletePod(pod.Name, w.Profile.Grace)
		}
	}
	w.Server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) {
		object.Need(o, "status")["replicas"] = int64(len(w.podsOf(v)) + w.ending(v))
	})
}
