package world

import (
	"maps"
	"slices"
	"strconv"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Revisions are the Deployment's ReplicaSets, the one of its template apart.
func (w *World) Revisions(d *server.Version) (current *server.Version, old []*server.Version, newest int) {
	for _, rs := range w.Server.Objects(object.ReplicaSets) {
		if by := object.Controller(rs.Object); by != object.UID(d.Object) {
			continue
		}
		newest = max(newest, revisionOf(rs.Object))
		if Template(rs.Object) == Template(d.Object) {
			current = rs
			continue
		}
		old = append(old, rs)
	}
	return current, old, newest
}

func revisionOf(o object.Object) int {
	n, err := strconv.Atoi(object.Annotation(o, RevisionKey))
	if err != nil {
		return 0
	}
	return n
}

func (w *World) reconcileDeployment(d *server.Version) {
	w.adopt(d)
	current, old, newest := w.Revisions(d)
	by := server.Writer{Manager: ControllerManager}
	n := d.Count()
	if current == nil {
		w.createRevision(d, newest+1)
		return
	}
	revision := revisionOf(current.Object)
	if revision < newest {
		revision = newest + 1
	}
	w.Server.Change(object.ReplicaSets, current.Name, by, func(o object.Object) { copyAnnotations(o, d.Object, strconv.Itoa(revision)) })
	current = w.Server.Get(object.ReplicaSets, current.Name)
	w.Server.Change(object.Deployments, d.Name, by, func(o object.Object) { object.SetText(o, "annotations", RevisionKey, strconv.Itoa(revision)) })
	if w.Profile.Recreate {
		w.recreateRevisions(current, old, n)
	} else {
		w.scaleRevisions(d, current, old, n)
	}
	w.countDeployment(d, current, old)
}

// recreateRevisions ends all pods of older revisions, and starts new ones when none of them is left.
func (w *World) recreateRevisions(current *server.Version, old []*server.Version, n int) {
	for _, rs := range old {
		w.Scale(rs, 0)
	}
	left := slices.ContainsFunc(w.Server.Objects(object.Pods), func(pod *server.Version) bool {
		return slices.ContainsFunc(old, func(rs *server.Version) bool { return object.Controller(pod.Object) == object.UID(rs.Object) })
	})
	if !left { // otherwise the end of the last one wakes this controller
		w.Scale(current, n)
	}
}

// copyAnnotations gives a ReplicaSet its Deployment's annotations, as the Deployment controller does: that is why an
// undo brings an old assignment back.
func copyAnnotations(rs, d object.Object, revision string) {
	maps.Copy(object.Need(rs, object.Metadata, "annotations"), object.At(d, object.Metadata, "annotations"))
	object.SetText(rs, "annotations", RevisionKey, revision)
}

func (w *World) createRevision(d *server.Version, revision int) {
	k := object.KindOf(object.ReplicaSets)
	hash := "h" + strconv.Itoa(Template(d.Object)) + "-" + object.UID(d.Object)[:8]
	match := object.Object{AppLabel: OwnerName, hashLabel: hash}
	o := object.Object{
		object.Metadata: object.Object{
			"name": OwnerName + "-" + hash, labels: object.Clone(match), "ownerReferences": object.ControlledBy(d.Kind, d.Object),
		},
		"spec": object.Object{
			"replicas": int64(0), "selector": object.Object{"matchLabels": object.Clone(match)},
			"template": object.Object{object.Metadata: object.Object{labels: object.Clone(match)}},
		},
	}
	w.SetTemplate(o, Template(d.Object))
	if by := object.Text(d.Object, "spec", "template", object.Metadata, labels, receipt.AssignLabel); by != "" {
		object.SetText(o, labels, receipt.AssignLabel, by)
	}
	copyAnnotations(o, d.Object, strconv.Itoa(revision))
	w.Server.Put(k, o, server.Writer{Manager: ControllerManager})
}

func replicas(v *server.Version) int { return object.Number(v.Object, "spec", "replicas") }

func available(v *server.Version) int { return object.Number(v.Object, "status", "availableReplicas") }

// scaleRevisions moves pods to the current revision within maxSurge and maxUnavailable.
func (w *World) scaleRevisions(d, current *server.Version, old []*server.Version, n int) {
	surge, unavailable := w.limits(d.Object)
	total, oldTotal, ready := replicas(current), 0, available(current)
	for _, rs := range old {
		total += replicas(rs)
		oldTotal += replicas(rs)
		ready += available(rs)
	}
	if oldTotal == 0 {
		w.Scale(current, n)
		return
	}
	switch {
	case replicas(current) > n:
		w.Scale(current, n)
		return
	case replicas(current) < n && total < n+surge:
		w.Scale(current, min(n, replicas(current)+n+surge-total))
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
			w.Scale(rs, replicas(rs)-unhealthy)
			room -= unhealthy
		}
	}
	spare := min(room, ready-(n-unavailable))
	for _, rs := range old {
		rs = w.Server.Get(object.ReplicaSets, rs.Name)
		if spare <= 0 {
			return
		}
		fewer := min(spare, replicas(rs))
		w.Scale(rs, replicas(rs)-fewer)
		spare -= fewer
	}
}

func (w *World) limits(d object.Object) (surge, unavailable int) {
	surge = object.Number(d, "spec", "strategy", "rollingUpdate", "maxSurge")
	unavailable = object.Number(d, "spec", "strategy", "rollingUpdate", "maxUnavailable")
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (w *World) countDeployment(d, current *server.Version, old []*server.Version) {
	updated := object.Number(current.Object, "status", "replicas")
	all, ready, ending := updated, available(current), object.Number(current.Object, "status", "terminatingReplicas")
	for _, rs := range old {
		all += object.Number(rs.Object, "status", "replicas")
		ready += available(rs)
		ending += object.Number(rs.Object, "status", "terminatingReplicas")
	}
	w.Server.Change(object.Deployments, d.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) {
		status := object.Need(o, "status")
		status["replicas"], status["updatedReplicas"] = int64(all), int64(updated)
		status["readyReplicas"], status["availableReplicas"] = int64(ready), int64(ready)
		if w.CountsEnding {
			status["terminatingReplicas"] = int64(ending)
		}
	})
}
