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
	w.server.put(k, object.Object{object.Metadata: object.Object{"name": ownerName, "labels": object.Clone(app)}, "spec": spec}, writer{manager: "kubectl-create"})
}

func (w *world) owner() *version { return w.server.get(w.profile.Resource, ownerName) }

// wakeControllers has the workload's controllers look at it soon.
func (w *world) wakeControllers(v *version) {
	w.reconcileSoon(w.profile.Resource, ownerName)
	if w.profile.Resource != object.Deployments {
		return
	}
	switch v.kind.Resource {
	case object.ReplicaSets:
		w.reconcileSoon(object.ReplicaSets, v.name)
	case object.Pods:
		for _, rs := range w.server.objects(object.ReplicaSets) {
			w.reconcileSoon(object.ReplicaSets, rs.name)
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
	w.after(d.Tail(100*time.Millisecond), func() {
		delete(w.pending, key)
		v := w.server.get(resource, name)
		if v == nil {
			return
		}
		w.step("reconcile", key)
		w.reconcile(v)
	})
}

func (w *world) reconcile(v *version) {
	switch v.kind.Resource {
	case object.Deployments:
		w.reconcileDeployment(v)
	case object.ReplicaSets:
		w.reconcileSet(v, v.name)
	case object.Jobs:
		w.reconcileSet(v, v.name)
	case object.StatefulSets:
		w.reconcileStatefulSet(v)
	}
}

func template(o object.Object) int { return object.Number(o, "spec", "template", "version") }

// revisions are the Deployment's ReplicaSets, the one of its template apart.
func (w *world) revisions(d *version) (current *version, old []*version, newest int) {
	for _, rs := range w.server.objects(object.ReplicaSets) {
		if by := object.Controller(rs.object); by != object.UID(d.object) {
			continue
		}
		newest = max(newest, revisionOf(rs.object))
		if template(rs.object) == template(d.object) {
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

func (w *world) reconcileDeployment(d *version) {
	current, old, newest := w.revisions(d)
	by := writer{manager: manager}
	n := object.Number(d.object, "spec", "replicas")
	if current == nil {
		w.createRevision(d, newest+1)
		return
	}
	revision := revisionOf(current.object)
	if revision < newest {
		revision = newest + 1
	}
	w.server.change(object.ReplicaSets, current.name, by, func(o object.Object) { copyAnnotations(o, d.object, strconv.Itoa(revision)) })
	current = w.server.get(object.ReplicaSets, current.name)
	w.server.change(object.Deployments, d.name, by, func(o object.Object) { object.SetText(o, "annotations", revisionKey, strconv.Itoa(revision)) })
	if w.profile.Recreate {
		w.recreateRevisions(current, old, n)
	} else {
		w.scaleRevisions(d, current, old, n)
	}
	w.countDeployment(d, current, old)
}

// recreateRevisions ends all pods of older revisions, and starts new ones when none of them is left.
func (w *world) recreateRevisions(current *version, old []*version, n int) {
	for _, rs := range old {
		w.scale(rs, 0)
	}
	left := slices.ContainsFunc(w.server.objects(object.Pods), func(pod *version) bool {
		return slices.ContainsFunc(old, func(rs *version) bool { return object.Controller(pod.object) == object.UID(rs.object) })
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

func (w *world) createRevision(d *version, revision int) {
	k := object.KindOf(object.ReplicaSets)
	hash := "h" + strconv.Itoa(template(d.object))
	match := object.Object{appLabel: ownerName, hashLabel: hash}
	o := object.Object{
		object.Metadata: object.Object{
			"name": ownerName + "-" + hash + "-" + assignment.ShortUID(object.UID(d.object)), "labels": object.Clone(match), "ownerReferences": object.ControlledBy(d.kind, d.object),
		},
		"spec": object.Object{
			"replicas": int64(0), "selector": object.Object{"matchLabels": object.Clone(match)},
			"template": object.Object{object.Metadata: object.Object{"labels": object.Clone(match)}, "version": int64(template(d.object))},
		},
	}
	copyAnnotations(o, d.object, strconv.Itoa(revision))
	w.server.put(k, o, writer{manager: manager})
}

func replicas(v *version) int  { return object.Number(v.object, "spec", "replicas") }
func available(v *version) int { return object.Number(v.object, "status", "availableReplicas") }

func (w *world) scale(v *version, n int) {
	if v.object == nil || replicas(v) == n {
		return
	}
	w.server.change(v.kind.Resource, v.name, writer{manager: manager}, func(o object.Object) { object.Need(o, "spec")[v.kind.Count] = int64(n) })
}

// scaleRevisions moves pods to the current revision within maxSurge and maxUnavailable.
func (w *world) scaleRevisions(d, current *version, old []*version, n int) {
	surge, unavailable := w.limits(d.object)
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
		rs = w.server.get(object.ReplicaSets, rs.name)
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

func (w *world) countDeployment(d, current *version, old []*version) {
	updated := object.Number(current.object, "status", "replicas")
	all, ready := updated, available(current)
	for _, rs := range old {
		all += object.Number(rs.object, "status", "replicas")
		ready += available(rs)
	}
	w.server.change(object.Deployments, d.name, writer{manager: manager, status: true}, func(o object.Object) {
		status := object.Need(o, "status")
		status["replicas"], status["updatedReplicas"] = int64(all), int64(updated)
		status["readyReplicas"], status["availableReplicas"] = int64(ready), int64(ready)
	})
}

// podsOf returns a controller's pods that are neither dead nor Terminating, and lets go of those that somebody relabelled.
func (w *world) podsOf(v *version) []*version {
	var active []*version
	for _, pod := range w.server.objects(object.Pods) {
		if by := object.Controller(pod.object); by != object.UID(v.object) {
			continue
		}
		if !inWorkload(pod.object) {
			w.server.change(object.Pods, pod.name, writer{manager: manager}, func(o object.Object) { delete(object.Need(o, object.Metadata), "ownerReferences") })
			continue
		}
		if !object.Terminating(pod.object) && !object.Ended(pod.object) {
			active = append(active, pod)
		}
	}
	return active
}

// inWorkload reports whether the workload's selector matches an object.
func inWorkload(o object.Object) bool {
	return object.Text(o, object.Metadata, "labels", appLabel) == ownerName
}

func isReady(v *version) bool { return object.Text(v.object, "status", "ready") == "True" }

// reconcileSet makes a ReplicaSet's or a Job's number of pods right.
func (w *world) reconcileSet(v *version, prefix string) {
	active := w.podsOf(v)
	n := object.Number(v.object, "spec", v.kind.Count)
	indexes := w.missing(active, n)
	for i := range n - len(active) {
		w.podNumber++
		w.createPod(v, prefix+"-"+strconv.Itoa(w.podNumber), indexes[i])
	}
	if len(active) > n {
		slices.SortFunc(active, rank)
		for _, pod := range active[:len(active)-n] {
			w.server.deletePod(pod.name, w.profile.Grace)
		}
	}
	ready := 0
	for _, pod := range active {
		if isReady(pod) {
			ready++
		}
	}
	w.server.change(v.kind.Resource, v.name, writer{manager: manager, status: true}, func(o object.Object) {
		status := object.Need(o, "status")
		status["replicas"], status["readyReplicas"], status["availableReplicas"] = int64(len(active)), int64(ready), int64(ready)
	})
}

// missing are the completion indexes below n that no pod has, or n empty ones where pods have none.
func (w *world) missing(active []*version, n int) []string {
	if !w.profile.Indexed {
		return make([]string, n)
	}
	has := map[string]bool{}
	for _, pod := range active {
		has[object.Annotation(pod.object, store.CompletionIndexLabel)] = true
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
func rank(a, b *version) int {
	order := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(order(object.Text(a.object, "spec", "nodeName") != ""), order(object.Text(b.object, "spec", "nodeName") != "")),
		cmp.Compare(order(isReady(a)), order(isReady(b))),
		cmp.Compare(cost(a), cost(b)),
		cmp.Compare(object.Text(b.object, object.Metadata, "creationTimestamp"), object.Text(a.object, object.Metadata, "creationTimestamp")),
		cmp.Compare(a.name, b.name),
	)
}

func cost(v *version) int {
	n, err := strconv.Atoi(object.Annotation(v.object, costKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *world) createPod(v *version, podName, index string) {
	if w.server.quota || w.server.get(object.Pods, podName) != nil {
		w.after(w.dice("quota", podName, strconv.Itoa(w.lines)).Span(time.Second, 5*time.Second), func() { w.reconcileSoon(v.kind.Resource, v.name) })
		return
	}
	k := object.KindOf(object.Pods)
	podLabels := object.Object{appLabel: ownerName}
	maps.Copy(podLabels, object.At(v.object, "spec", "template", object.Metadata, "labels"))
	if v.kind.Resource == object.StatefulSets {
		podLabels["controller-revision-hash"] = strconv.Itoa(template(v.object))
	}
	annotations := object.Object{}
	if index != "" {
		podLabels[store.CompletionIndexLabel], annotations[store.CompletionIndexLabel] = index, index
	}
	w.server.put(k, object.Object{
		object.Metadata: object.Object{"name": podName, "labels": podLabels, "annotations": annotations, "ownerReferences": object.ControlledBy(v.kind, v.object)},
		"spec":          object.Object{"version": int64(template(v.object)), "containers": []any{object.Object{"name": container}}},
		"status":        object.Object{"phase": "Pending", "ready": "False"},
	}, writer{manager: manager})
}

// reconcileStatefulSet keeps the names 0 to n-1, all at once (podManagementPolicy Parallel) or in order (OrderedReady), and replaces one
// changed pod at a time.
func (w *world) reconcileStatefulSet(v *version) {
	n := object.Number(v.object, "spec", "replicas")
	all := true
	var outdated *version
	for i := range n {
		podName := fmt.Sprintf("%s-%d", v.name, i)
		pod := w.server.get(object.Pods, podName)
		if pod == nil {
			if all || !w.profile.Ordered {
				w.createPod(v, podName, "")
			}
			all = false
			continue
		}
		switch {
		case object.Terminating(pod.object):
			all = false
			continue
		case object.Ended(pod.object):
			w.server.deletePod(podName, w.profile.Grace)
			w.server.remove(w.server.get(object.Pods, podName))
			all = false
			continue
		}
		all = all && (isReady(pod) || object.Number(pod.object, "spec", "version") != template(v.object))
		if object.Number(pod.object, "spec", "version") != template(v.object) {
			outdated = pod
		}
	}
	if all && outdated != nil {
		w.server.deletePod(outdated.name, w.profile.Grace)
	}
	var extra []*version
	for _, pod := range w.podsOf(v) {
		var i int
		if _, err := fmt.Sscanf(pod.name, v.name+"-%d", &i); err == nil && i >= n {
			extra = append(extra, pod)
		}
	}
	slices.SortFunc(extra, func(a, b *version) int {
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(b.name, a.name))
	})
	for i, pod := range extra {
		if i == 0 || !w.profile.Ordered {
			w.server.deletePod(pod.name, w.profile.Grace)
		}
	}
}

// collect is the pod garbage collector: a pod that runs nowhere goes.
func (w *world) collect() {
	if w.over {
		return
	}
	for _, pod := range w.server.objects(object.Pods) {
		by := object.Controller(pod.object)
		orphan := by != "" && w.ownerUIDs()[by] == ""
		switch {
		case object.Ended(pod.object):
			if !object.Terminating(pod.object) {
				w.server.remove(pod)
			}
		case orphan:
			w.server.deletePod(pod.name, w.profile.Grace)
		}
	}
	for _, rs := range w.server.objects(object.ReplicaSets) {
		if by := object.Controller(rs.object); by != "" && w.ownerUIDs()[by] == "" {
			w.server.remove(rs)
		}
	}
	w.after(w.dice("collect", strconv.Itoa(w.steps)).Span(20*time.Second, 60*time.Second), w.collect)
}

// belongs reports whether the owner controls an object, or controls what does.
func (w *world) belongs(v, owner *version) bool {
	by := object.Controller(v.object)
	return by == object.UID(owner.object) || slices.ContainsFunc(w.server.objects(object.ReplicaSets), func(rs *version) bool {
		return object.UID(rs.object) == by && w.belongs(rs, owner)
	})
}

// ownerUIDs are the UIDs of everything that controls something.
func (w *world) ownerUIDs() map[string]string {
	out := map[string]string{}
	for _, resource := range []string{object.Deployments, object.ReplicaSets, object.StatefulSets, object.Jobs} {
		for _, v := range w.server.objects(resource) {
			out[object.UID(v.object)] = v.name
		}
	}
	return out
}
