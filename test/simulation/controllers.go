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
	k := kindOf(w.profile.resource)
	app := object{appLabel: ownerName}
	spec := object{
		k.count:    int64(count),
		"selector": object{"matchLabels": app},
		"template": object{metadata: object{"labels": clone(app)}, "version": int64(template)},
	}
	if k.resource == deployments && w.profile.recreate {
		spec["strategy"] = object{"type": "Recreate"}
	} else if k.resource == deployments {
		spec["strategy"] = object{"type": "RollingUpdate", "rollingUpdate": object{
			"maxSurge": int64(w.profile.surge), "maxUnavailable": int64(w.profile.unavailable),
		}}
	}
	w.server.put(k, object{metadata: object{"name": ownerName, "labels": clone(app)}, "spec": spec}, writer{manager: "kubectl-create"})
}

func (w *world) owner() *version { return w.server.get(w.profile.resource, ownerName) }

// wakeControllers has the workload's controllers look at it soon.
func (w *world) wakeControllers(v *version) {
	w.reconcileSoon(w.profile.resource, ownerName)
	if w.profile.resource != deployments {
		return
	}
	switch v.kind.resource {
	case replicaSets:
		w.reconcileSoon(replicaSets, v.name)
	case pods:
		for _, rs := range w.server.objects(replicaSets) {
			w.reconcileSoon(replicaSets, rs.name)
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
	switch v.kind.resource {
	case deployments:
		w.reconcileDeployment(v)
	case replicaSets:
		w.reconcileSet(v, v.name)
	case jobs:
		w.reconcileSet(v, v.name)
	case statefulSets:
		w.reconcileStatefulSet(v)
	}
}

func template(o object) int { return number(o, "spec", "template", "version") }

// revisions are the Deployment's ReplicaSets, the one of its template apart.
func (w *world) revisions(d *version) (current *version, old []*version, newest int) {
	for _, rs := range w.server.objects(replicaSets) {
		if by := controller(rs.object); by != uid(d.object) {
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

func revisionOf(o object) int {
	n, err := strconv.Atoi(annotation(o, revisionKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *world) reconcileDeployment(d *version) {
	current, old, newest := w.revisions(d)
	by := writer{manager: manager}
	n := number(d.object, "spec", "replicas")
	if current == nil {
		w.createRevision(d, newest+1)
		return
	}
	revision := revisionOf(current.object)
	if revision < newest {
		revision = newest + 1
	}
	w.server.change(replicaSets, current.name, by, func(o object) { copyAnnotations(o, d.object, strconv.Itoa(revision)) })
	current = w.server.get(replicaSets, current.name)
	w.server.change(deployments, d.name, by, func(o object) { setText(o, "annotations", revisionKey, strconv.Itoa(revision)) })
	if w.profile.recreate {
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
	left := slices.ContainsFunc(w.server.objects(pods), func(pod *version) bool {
		return slices.ContainsFunc(old, func(rs *version) bool { return controller(pod.object) == uid(rs.object) })
	})
	if !left { // otherwise the end of the last one wakes this controller
		w.scale(current, n)
	}
}

// copyAnnotations gives a ReplicaSet its Deployment's annotations, as the Deployment controller does: that is why an
// undo brings an old assignment back.
func copyAnnotations(rs, d object, revision string) {
	maps.Copy(need(rs, metadata, "annotations"), at(d, metadata, "annotations"))
	setText(rs, "annotations", revisionKey, revision)
}

func (w *world) createRevision(d *version, revision int) {
	k := kindOf(replicaSets)
	hash := "h" + strconv.Itoa(template(d.object))
	match := object{appLabel: ownerName, hashLabel: hash}
	o := object{
		metadata: object{
			"name": ownerName + "-" + hash + "-" + assignment.ShortUID(uid(d.object)), "labels": clone(match), "ownerReferences": controlledBy(d.kind, d.object),
		},
		"spec": object{
			"replicas": int64(0), "selector": object{"matchLabels": clone(match)},
			"template": object{metadata: object{"labels": clone(match)}, "version": int64(template(d.object))},
		},
	}
	copyAnnotations(o, d.object, strconv.Itoa(revision))
	w.server.put(k, o, writer{manager: manager})
}

func replicas(v *version) int  { return number(v.object, "spec", "replicas") }
func available(v *version) int { return number(v.object, "status", "availableReplicas") }

func (w *world) scale(v *version, n int) {
	if v.object == nil || replicas(v) == n {
		return
	}
	w.server.change(v.kind.resource, v.name, writer{manager: manager}, func(o object) { need(o, "spec")[v.kind.count] = int64(n) })
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
		rs = w.server.get(replicaSets, rs.name)
		if spare <= 0 {
			return
		}
		fewer := min(spare, replicas(rs))
		w.scale(rs, replicas(rs)-fewer)
		spare -= fewer
	}
}

func (w *world) limits(d object) (surge, unavailable int) {
	surge = number(d, "spec", "strategy", "rollingUpdate", "maxSurge")
	unavailable = number(d, "spec", "strategy", "rollingUpdate", "maxUnavailable")
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (w *world) countDeployment(d, current *version, old []*version) {
	updated := number(current.object, "status", "replicas")
	all, ready := updated, available(current)
	for _, rs := range old {
		all += number(rs.object, "status", "replicas")
		ready += available(rs)
	}
	w.server.change(deployments, d.name, writer{manager: manager, status: true}, func(o object) {
		status := need(o, "status")
		status["replicas"], status["updatedReplicas"] = int64(all), int64(updated)
		status["readyReplicas"], status["availableReplicas"] = int64(ready), int64(ready)
	})
}

// podsOf returns a controller's pods that are neither dead nor Terminating, and lets go of those that somebody relabelled.
func (w *world) podsOf(v *version) []*version {
	var active []*version
	for _, pod := range w.server.objects(pods) {
		if by := controller(pod.object); by != uid(v.object) {
			continue
		}
		if !inWorkload(pod.object) {
			w.server.change(pods, pod.name, writer{manager: manager}, func(o object) { delete(need(o, metadata), "ownerReferences") })
			continue
		}
		if !terminating(pod.object) && !ended(pod.object) {
			active = append(active, pod)
		}
	}
	return active
}

// inWorkload reports whether the workload's selector matches an object.
func inWorkload(o object) bool { return text(o, metadata, "labels", appLabel) == ownerName }

func isReady(v *version) bool { return text(v.object, "status", "ready") == "True" }

// reconcileSet makes a ReplicaSet's or a Job's number of pods right.
func (w *world) reconcileSet(v *version, prefix string) {
	active := w.podsOf(v)
	n := number(v.object, "spec", v.kind.count)
	indexes := w.missing(active, n)
	for i := range n - len(active) {
		w.podNumber++
		w.createPod(v, prefix+"-"+strconv.Itoa(w.podNumber), indexes[i])
	}
	if len(active) > n {
		slices.SortFunc(active, rank)
		for _, pod := range active[:len(active)-n] {
			w.server.deletePod(pod.name, w.profile.grace)
		}
	}
	ready := 0
	for _, pod := range active {
		if isReady(pod) {
			ready++
		}
	}
	w.server.change(v.kind.resource, v.name, writer{manager: manager, status: true}, func(o object) {
		status := need(o, "status")
		status["replicas"], status["readyReplicas"], status["availableReplicas"] = int64(len(active)), int64(ready), int64(ready)
	})
}

// missing are the completion indexes below n that no pod has, or n empty ones where pods have none.
func (w *world) missing(active []*version, n int) []string {
	if !w.profile.indexed {
		return make([]string, n)
	}
	has := map[string]bool{}
	for _, pod := range active {
		has[annotation(pod.object, store.CompletionIndexLabel)] = true
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
		cmp.Compare(order(text(a.object, "spec", "nodeName") != ""), order(text(b.object, "spec", "nodeName") != "")),
		cmp.Compare(order(isReady(a)), order(isReady(b))),
		cmp.Compare(cost(a), cost(b)),
		cmp.Compare(text(b.object, metadata, "creationTimestamp"), text(a.object, metadata, "creationTimestamp")),
		cmp.Compare(a.name, b.name),
	)
}

func cost(v *version) int {
	n, err := strconv.Atoi(annotation(v.object, costKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *world) createPod(v *version, podName, index string) {
	if w.server.quota || w.server.get(pods, podName) != nil {
		w.after(w.dice("quota", podName, strconv.Itoa(w.lines)).Span(time.Second, 5*time.Second), func() { w.reconcileSoon(v.kind.resource, v.name) })
		return
	}
	k := kindOf(pods)
	podLabels := object{appLabel: ownerName}
	maps.Copy(podLabels, at(v.object, "spec", "template", metadata, "labels"))
	if v.kind.resource == statefulSets {
		podLabels["controller-revision-hash"] = strconv.Itoa(template(v.object))
	}
	annotations := object{}
	if index != "" {
		podLabels[store.CompletionIndexLabel], annotations[store.CompletionIndexLabel] = index, index
	}
	w.server.put(k, object{
		metadata: object{"name": podName, "labels": podLabels, "annotations": annotations, "ownerReferences": controlledBy(v.kind, v.object)},
		"spec":   object{"version": int64(template(v.object)), "containers": []any{object{"name": container}}},
		"status": object{"phase": "Pending", "ready": "False"},
	}, writer{manager: manager})
}

// reconcileStatefulSet keeps the names 0 to n-1, all at once (podManagementPolicy Parallel) or in order (OrderedReady), and replaces one
// changed pod at a time.
func (w *world) reconcileStatefulSet(v *version) {
	n := number(v.object, "spec", "replicas")
	all := true
	var outdated *version
	for i := range n {
		podName := fmt.Sprintf("%s-%d", v.name, i)
		pod := w.server.get(pods, podName)
		if pod == nil {
			if all || !w.profile.ordered {
				w.createPod(v, podName, "")
			}
			all = false
			continue
		}
		switch {
		case terminating(pod.object):
			all = false
			continue
		case ended(pod.object):
			w.server.deletePod(podName, w.profile.grace)
			w.server.remove(w.server.get(pods, podName))
			all = false
			continue
		}
		all = all && (isReady(pod) || number(pod.object, "spec", "version") != template(v.object))
		if number(pod.object, "spec", "version") != template(v.object) {
			outdated = pod
		}
	}
	if all && outdated != nil {
		w.server.deletePod(outdated.name, w.profile.grace)
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
		if i == 0 || !w.profile.ordered {
			w.server.deletePod(pod.name, w.profile.grace)
		}
	}
}

// collect is the pod garbage collector: a pod that runs nowhere goes.
func (w *world) collect() {
	if w.over {
		return
	}
	for _, pod := range w.server.objects(pods) {
		by := controller(pod.object)
		orphan := by != "" && w.ownerUIDs()[by] == ""
		switch {
		case ended(pod.object):
			if !terminating(pod.object) {
				w.server.remove(pod)
			}
		case orphan:
			w.server.deletePod(pod.name, w.profile.grace)
		}
	}
	for _, rs := range w.server.objects(replicaSets) {
		if by := controller(rs.object); by != "" && w.ownerUIDs()[by] == "" {
			w.server.remove(rs)
		}
	}
	w.after(w.dice("collect", strconv.Itoa(w.steps)).Span(20*time.Second, 60*time.Second), w.collect)
}

// belongs reports whether the owner controls an object, or controls what does.
func (w *world) belongs(v, owner *version) bool {
	by := controller(v.object)
	return by == uid(owner.object) || slices.ContainsFunc(w.server.objects(replicaSets), func(rs *version) bool {
		return uid(rs.object) == by && w.belongs(rs, owner)
	})
}

// ownerUIDs are the UIDs of everything that controls something.
func (w *world) ownerUIDs() map[string]string {
	out := map[string]string{}
	for _, resource := range []string{deployments, replicaSets, statefulSets, jobs} {
		for _, v := range w.server.objects(resource) {
			out[uid(v.object)] = v.name
		}
	}
	return out
}
