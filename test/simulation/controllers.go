package simulation

import (
	"strconv"
	"time"

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

func (w *world) scale(v *server.Version, n int) {
	if v.Object == nil || replicas(v) == n {
		return
	}
	w.server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: manager}, func(o object.Object) { object.Need(o, "spec")[v.Kind.Count] = int64(n) })
}

// inWorkload reports whether the workload's selector matches an object.
func inWorkload(o object.Object) bool {
	return object.Text(o, object.Metadata, "labels", appLabel) == ownerName
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

// relabel takes a pod out of its workload: another one runs in its place.
func (w *world) relabel(pod string) {
	w.server.Change(object.Pods, pod, server.Writer{Manager: "kubectl-label"}, func(o object.Object) { object.SetText(o, "labels", appLabel, "debug") })
}
