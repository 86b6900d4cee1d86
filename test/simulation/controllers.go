package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

const (
	manager     = "kube-controller-manager"
	revisionKey = "deployment.kubernetes.io/revision"
	costKey     = "controller.kubernetes.io/pod-deletion-cost"
	appLabel    = "app"
	hashLabel   = "pod-template-hash"
)

// createOwner makes the workload, with no annotations and a first template.
func (w *world) createOwner(count, template int) {
	k := object.KindOf(w.profile.Resource)
	app := object.Object{appLabel: ownerName}
	spec := object.Object{
		k.Count:    int64(count),
		"selector": object.Object{"matchLabels": app},
		"template": object.Object{object.Metadata: object.Object{"labels": object.Clone(app)}, "version": int64(template)},
	}
	if k.Resource == object.Deployments && w.profile.Recreate {
		spec["strategy"] = object.Object{"type": "Recreate"}
	} else if k.Resource == object.Deployments {
		spec["strategy"] = object.Object{"type": "RollingUpdate", "rollingUpdate": object.Object{
			"maxSurge": int64(w.profile.Surge), "maxUnavailable": int64(w.profile.Unavailable),
		}}
	}
	w.server.Put(k, object.Object{object.Metadata: object.Object{"name": ownerName, "labels": object.Clone(app)}, "spec": spec}, server.Writer{Manager: "kubectl-create"})
}

func (w *world) owner() *server.Version { return w.server.Get(w.profile.Resource, ownerName) }

// wakeControllers has the workload's controllers look at it soon.
func (w *world) wakeControllers(v *server.Version) {
	w.reconcileSoon(w.profile.Resource, ownerName)
	if w.profile.Resource != object.Deployments {
		return
	}
	switch v.Kind.Resource {
	case object.ReplicaSets:
		w.reconcileSoon(object.ReplicaSets, v.Name)
	case object.Pods:
		for _, rs := range w.server.Objects(object.ReplicaSets) {
			w.reconcileSoon(object.ReplicaSets, rs.Name)
		}
	}
}

func (w *world) reconcileSoon(resource, name string) {
	key := resource + "/" + name
	if w.pending[key] {
		return
	}
	w.pending[key] = true
	d := w.dice("reconcile", key, strconv.Itoa(w.steps), strconv.Itoa(w.lines))
	w.After(d.Tail(100*time.Millisecond), func() {
		delete(w.pending, key)
		v := w.server.Get(resource, name)
		if v == nil {
			return
		}
		w.Step("reconcile", key)
		w.reconcile(v)
	})
}

func (w *world) reconcile(v *server.Version) {
	switch v.Kind.Resource {
	case object.Deployments:
		w.reconcileDeployment(v)
	case object.ReplicaSets:
		w.reconcileSet(v, v.Name)
	case object.Jobs:
		w.reconcileSet(v, v.Name)
	case object.StatefulSets:
		w.reconcileStatefulSet(v)
	}
}

func template(o object.Object) int { return object.Number(o, "spec", "template", "version") }

// revisions are the Deployment's ReplicaSets, the one of its template apart.
func (w *world) revisions(d *server.Version) (current *server.Version, old []*server.Version, newest int) {
	for _, rs := range w.server.Objects(object.ReplicaSets) {
		if by := object.Controller(rs.Object); by != object.UID(d.Object) {
			continue
		}
		newest = max(newest, revisionOf(rs.Object))
		if template(rs.Object) == template(d.Object) {
			current = rs
			continue
		}
		old = append(old, rs)
	}
	return current, old, newest
}

func revisionOf(o object.Object) int {
	n, err := strconv.Atoi(object.Annotation(o, revisionKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *world) reconcileDeployment(d *server.Version) {
	current, old, newest := w.revisions(d)
	by := server.Writer{Manager: manager}
	n := object.Number(d.Object, "spec", "replicas")
	if current == nil {
		w.createRevision(d, newest+1)
		return
	}
	revision := revisionOf(current.Object)
	if revision < newest {
		revision = newest + 1
	}
	w.server.Change(object.ReplicaSets, current.Name, by, func(o object.Object) { copyAnnotations(o, d.Object, strconv.Itoa(revision)) })
	current = w.server.Get(object.ReplicaSets, current.Name)
	w.server.Change(object.Deployments, d.Name, by, func(o object.Object) { object.SetText(o, "annotations", revisionKey, strconv.Itoa(revision)) })
	if w.profile.Recreate {
		w.recreateRevisions(current, old, n)
	} else {
		w.scaleRevisions(d, current, old, n)
	}
	w.countDeployment(d, current, old)
}

// recreateRevisions ends all pods of older revisions, and starts new ones when none of them is left.
func (w *world) recreateRevisions(current *server.Version, old []*server.Version, n int) {
	for _, rs := range old {
		w.scale(rs, 0)
	}
	left := slices.ContainsFunc(w.server.Objects(object.Pods), func(pod *server.Version) bool {
		return slices.ContainsFunc(old, func(rs *server.Version) bool { return object.Controller(pod.Object) == object.UID(rs.Object) })
	})
	if !left { // otherwise the end of the last one wakes this controller
		w.scale(current, n)
	}
}

// copyAnnotations gives a ReplicaSet its Deployment's annotations, as the Deployment controller does: that is why an
// undo brings an old assignment back.
func copyAnnotations(rs, d object.Object, revision string) {
	maps.Copy(object.Need(rs, object.Metadata, "annotations"), object.At(d, object.Metadata, "annotations"))
	object.SetText(rs, "annotations", revisionKey, revision)
}

func (w *world) createRevision(d *server.Version, revision int) {
	k := object.KindOf(object.ReplicaSets)
	hash := "h" + strconv.Itoa(template(d.Object))
	match := object.Object{appLabel: ownerName, hashLabel: hash}
	o := object.Object{
		object.Metadata: object.Object{
			"name": ownerName + "-" + hash + "-" + assignment.ShortUID(object.UID(d.Object)), "labels": object.Clone(match), "ownerReferences": object.ControlledBy(d.Kind, d.Object),
		},
		"spec": object.Object{
			"replicas": int64(0), "selector": object.Object{"matchLabels": object.Clone(match)},
			"template": object.Object{object.Metadata: object.Object{"labels": object.Clone(match)}, "version": int64(template(d.Object))},
		},
	}
	copyAnnotations(o, d.Object, strconv.Itoa(revision))
	w.server.Put(k, o, server.Writer{Manager: manager})
}

func replicas(v *server.Version) int  { return object.Number(v.Object, "spec", "replicas") }
func available(v *server.Version) int { return object.Number(v.Object, "status", "availableReplicas") }

func (w *world) scale(v *server.Version, n int) {
	if v.Object == nil || replicas(v) == n {
		return
	}
	w.server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: manager}, func(o object.Object) { object.Need(o, "spec")[v.Kind.Count] = int64(n) })
}

// scaleRevisions moves pods to the current revision within maxSurge and maxUnavailable.
func (w *world) scaleRevisions(d, current *server.Version, old []*server.Version, n int) {
	surge, unavailable := w.limits(d.Object)
	total, oldTotal, ready := replicas(current), 0, available(current)
	for _, rs := range old {
		total += replicas(rs)
		oldTotal += replicas(rs)
		ready += available(rs)
	}
	if oldTotal == 0 {
		w.scale(current, n)
		return
	}
	switch {
	case replicas(current) > n:
		w.scale(current, n)
		return
	case replicas(current) < n && total < n+surge:
		w.scale(current, min(n, replicas(current)+n+surge-total))
		return
	}
	// Pods of the current revision that are not available count as unavailable already.
	room := total - (n - unavailable) - (replicas(current) - available(current))
	for _, rs := range old {
		if room <= 0 {
			return
		}
		unhealthy := min(room, replicas(rs)-available(rs))
		if unhealthy > 0 {
			w.scale(rs, replicas(rs)-unhealthy)
			room -= unhealthy
		}
	}
	spare := min(room, ready-(n-unavailable))
	for _, rs := range old {
		rs = w.server.Get(object.ReplicaSets, rs.Name)
		if spare <= 0 {
			return
		}
		fewer := min(spare, replicas(rs))
		w.scale(rs, replicas(rs)-fewer)
		spare -= fewer
	}
}

func (w *world) limits(d object.Object) (surge, unavailable int) {
	surge = object.Number(d, "spec", "strategy", "rollingUpdate", "maxSurge")
	unavailable = object.Number(d, "spec", "strategy", "rollingUpdate", "maxUnavailable")
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (w *world) countDeployment(d, current *server.Version, old []*server.Version) {
	updated := object.Number(current.Object, "status", "replicas")
	all, ready := updated, available(current)
	for _, rs := range old {
		all += object.Number(rs.Object, "status", "replicas")
		ready += available(rs)
	}
	w.server.Change(object.Deployments, d.Name, server.Writer{Manager: manager, Status: true}, func(o object.Object) {
		status := object.Need(o, "status")
		status["replicas"], status["updatedReplicas"] = int64(all), int64(updated)
		status["readyReplicas"], status["availableReplicas"] = int64(ready), int64(ready)
	})
}

// podsOf returns a controller's pods that are neither dead nor Terminating, and lets go of those that somebody relabelled.
func (w *world) podsOf(v *server.Version) []*server.Version {
	var active []*server.Version
	for _, pod := range w.server.Objects(object.Pods) {
		if by := object.Controller(pod.Object); by != object.UID(v.Object) {
			continue
		}
		if !inWorkload(pod.Object) {
			w.server.Change(object.Pods, pod.Name, server.Writer{Manager: manager}, func(o object.Object) { delete(object.Need(o, object.Metadata), "ownerReferences") })
			continue
		}
		if !object.Terminating(pod.Object) && !object.Ended(pod.Object) {
			active = append(active, pod)
		}
	}
	return active
}

// inWorkload reports whether the workload's selector matches an object.
func inWorkload(o object.Object) bool {
	return object.Text(o, object.Metadata, "labels", appLabel) == ownerName
}

func isReady(v *server.Version) bool { return object.Text(v.Object, "status", "ready") == "True" }

// reconcileSet makes a ReplicaSet's or a Job's number of pods right.
func (w *world) reconcileSet(v *server.Version, prefix string) {
	active := w.podsOf(v)
	n := object.Number(v.Object, "spec", v.Kind.Count)
	indexes := w.missing(active, n)
	for i := range n - len(active) {
		w.podNumber++
		w.createPod(v, prefix+"-"+strconv.Itoa(w.podNumber), indexes[i])
	}
	if len(active) > n {
		slices.SortFunc(active, rank)
		for _, pod := range active[:len(active)-n] {
			w.server.DeletePod(pod.Name, w.profile.Grace)
		}
	}
	ready := 0
	for _, pod := range active {
		if isReady(pod) {
			ready++
		}
	}
	w.server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: manager, Status: true}, func(o object.Object) {
		status := object.Need(o, "status")
		status["replicas"], status["readyReplicas"], status["availableReplicas"] = int64(len(active)), int64(ready), int64(ready)
	})
}

// missing are the completion indexes below n that no pod has, or n empty ones where pods have none.
func (w *world) missing(active []*server.Version, n int) []string {
	if !w.profile.Indexed {
		return make([]string, n)
	}
	has := map[string]bool{}
	for _, pod := range active {
		has[object.Annotation(pod.Object, store.CompletionIndexLabel)] = true
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

func (w *world) createPod(v *server.Version, podName, index string) {
	if w.quota || w.server.Get(object.Pods, podName) != nil {
		w.After(w.dice("quota", podName, strconv.Itoa(w.lines)).Span(time.Second, 5*time.Second), func() { w.reconcileSoon(v.Kind.Resource, v.Name) })
		return
	}
	k := object.KindOf(object.Pods)
	podLabels := object.Object{appLabel: ownerName}
	maps.Copy(podLabels, object.At(v.Object, "spec", "template", object.Metadata, "labels"))
	if v.Kind.Resource == object.StatefulSets {
		podLabels["controller-revision-hash"] = strconv.Itoa(template(v.Object))
	}
	annotations := object.Object{}
	if index != "" {
		podLabels[store.CompletionIndexLabel], annotations[store.CompletionIndexLabel] = index, index
	}
	w.server.Put(k, object.Object{
		object.Metadata: object.Object{"name": podName, "labels": podLabels, "annotations": annotations, "ownerReferences": object.ControlledBy(v.Kind, v.Object)},
		"spec":          object.Object{"version": int64(template(v.Object)), "containers": []any{object.Object{"name": container}}},
		"status":        object.Object{"phase": "Pending", "ready": "False"},
	}, server.Writer{Manager: manager})
}

// reconcileStatefulSet keeps the names 0 to n-1, all at once (podManagementPolicy Parallel) or in order (OrderedReady), and replaces one
// changed pod at a time.
func (w *world) reconcileStatefulSet(v *server.Version) {
	n := object.Number(v.Object, "spec", "replicas")
	all := true
	var outdated *server.Version
	for i := range n {
		podName := fmt.Sprintf("%s-%d", v.Name, i)
		pod := w.server.Get(object.Pods, podName)
		if pod == nil {
			if all || !w.profile.Ordered {
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
			w.server.DeletePod(podName, w.profile.Grace)
			w.server.Remove(w.server.Get(object.Pods, podName))
			all = false
			continue
		}
		all = all && (isReady(pod) || object.Number(pod.Object, "spec", "version") != template(v.Object))
		if object.Number(pod.Object, "spec", "version") != template(v.Object) {
			outdated = pod
		}
	}
	if all && outdated != nil {
		w.server.DeletePod(outdated.Name, w.profile.Grace)
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
		if i == 0 || !w.profile.Ordered {
			w.server.DeletePod(pod.Name, w.profile.Grace)
		}
	}
}

// collect is the pod garbage collector: a pod that runs nowhere goes.
func (w *world) collect() {
	if w.over {
		return
	}
	for _, pod := range w.server.Objects(object.Pods) {
		by := object.Controller(pod.Object)
		orphan := by != "" && w.ownerUIDs()[by] == ""
		switch {
		case object.Ended(pod.Object):
			if !object.Terminating(pod.Object) {
				w.server.Remove(pod)
			}
		case orphan:
			w.server.DeletePod(pod.Name, w.profile.Grace)
		}
	}
	for _, rs := range w.server.Objects(object.ReplicaSets) {
		if by := object.Controller(rs.Object); by != "" && w.ownerUIDs()[by] == "" {
			w.server.Remove(rs)
		}
	}
	w.After(w.dice("collect", strconv.Itoa(w.steps)).Span(20*time.Second, 60*time.Second), w.collect)
}

// belongs reports whether the owner controls an object, or controls what does.
func (w *world) belongs(v, owner *server.Version) bool {
	by := object.Controller(v.Object)
	return by == object.UID(owner.Object) || slices.ContainsFunc(w.server.Objects(object.ReplicaSets), func(rs *server.Version) bool {
		return object.UID(rs.Object) == by && w.belongs(rs, owner)
	})
}

// ownerUIDs are the UIDs of everything that controls something.
func (w *world) ownerUIDs() map[string]string {
	out := map[string]string{}
	for _, resource := range []string{object.Deployments, object.ReplicaSets, object.StatefulSets, object.Jobs} {
		for _, v := range w.server.Objects(resource) {
			out[object.UID(v.Object)] = v.Name
		}
	}
	return out
}
