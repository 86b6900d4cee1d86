package world

import (
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

const (
	// ControllerManager is the field manager of the controllers.
	ControllerManager = "kube-controller-manager"
	// RevisionKey is the annotation that numbers a Deployment's revisions.
	RevisionKey = "deployment.kubernetes.io/revision"
	// AppLabel is the label by which the workload selects its pods.
	AppLabel  = "app"
	costKey   = "controller.kubernetes.io/pod-deletion-cost"
	hashLabel = "pod-template-hash"
	labels    = "labels"
)

// CreateOwner makes the workload, with no annotations and a first template.
func (w *World) CreateOwner(count, template int) {
	k := object.KindOf(w.Profile.Resource)
	app := object.Object{AppLabel: OwnerName}
	spec := object.Object{
		k.Count:    int64(count),
		"selector": object.Object{"matchLabels": app},
		"template": object.Object{object.Metadata: object.Object{labels: object.Clone(app)}},
	}
	if k.Resource == object.Deployments && w.Profile.Recreate {
		spec["strategy"] = object.Object{"type": "Recreate"}
	} else if k.Resource == object.Deployments {
		spec["strategy"] = object.Object{"type": "RollingUpdate", "rollingUpdate": object.Object{
			"maxSurge": int64(w.Profile.Surge), "maxUnavailable": int64(w.Profile.Unavailable),
		}}
	}
	o := object.Object{object.Metadata: object.Object{"name": OwnerName, labels: object.Clone(app)}, "spec": spec}
	w.SetTemplate(o, template)
	if after := w.Profile.ReuseAfter; after > 0 {
		object.SetText(o, "annotations", assignment.ReuseKey, after.String())
	}
	w.Server.Put(k, o, server.Writer{Manager: "kubectl-create"})
	w.WantPartitions(w.Profile.Partitions)
}

// WantPartitions has the user say how many partitions there are, and how they are divided.
func (w *World) WantPartitions(n int) {
	if w.Profile.Partitions == 0 {
		return
	}
	w.ChangeOwner(server.Writer{Manager: "kubectl-annotate"}, func(o object.Object) {
		object.SetText(o, "annotations", assignment.PartitionCountKey, strconv.Itoa(n))
		object.SetText(o, "annotations", assignment.PartitionStrategyKey, w.Profile.Strategy)
		if w.Profile.Strategy != placement.NamePrimary { // that fails over at once by default
			object.SetText(o, "annotations", assignment.PartitionFailoverAfterKey, FailoverAfter.String())
		}
		if text := object.Annotation(o, assignment.PartitionTargetKey); text != "" {
			if _, err := placement.ParseTarget(text, n); err != nil {
				object.SetText(o, "annotations", assignment.PartitionTargetKey, "")
			}
		}
	})
}

// FailoverAfter is what the user says where he says so: no id's partitions go to others before.
const FailoverAfter = 20 * time.Second

// Owner returns the workload as it is now, nil if it does not exist.
func (w *World) Owner() *server.Version { return w.Server.Get(w.Profile.Resource, OwnerName) }

// wakeControllers has the workload's controllers look at it soon.
func (w *World) wakeControllers(v *server.Version) {
	w.reconcileSoon(w.Profile.Resource, OwnerName)
	if w.Profile.Resource != object.Deployments {
		return
	}
	switch v.Kind.Resource {
	case object.ReplicaSets:
		w.reconcileSoon(object.ReplicaSets, v.Name)
	case object.Pods:
		for _, rs := range w.Server.Objects(object.ReplicaSets) {
			w.reconcileSoon(object.ReplicaSets, rs.Name)
		}
	}
}

func (w *World) reconcileSoon(resource, name string) {
	key := resource + "/" + name
	if w.pending[key] {
		return
	}
	w.pending[key] = true
	d := w.Dice("reconcile", key, strconv.Itoa(w.Steps), strconv.Itoa(w.Lines))
	w.After(d.Tail(100*time.Millisecond), func() {
		delete(w.pending, key)
		v := w.Server.Get(resource, name)
		if v == nil {
			return
		}
		w.Step("reconcile", key)
		w.reconcile(v)
	})
}

func (w *World) reconcile(v *server.Version) {
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

// ChangeOwner stores what edit makes of the workload, if it exists.
func (w *World) ChangeOwner(by server.Writer, edit func(object.Object)) {
	w.Server.Change(w.Profile.Resource, OwnerName, by, edit)
}

// MadeFrom is the version of the template that a pod was made from.
func MadeFrom(pod *server.Version) int { return madeFrom(pod.Object) }

func madeFrom(pod object.Object) int { return object.Number(pod, "spec", "version") }

// Template is the version of the template of an owner or a revision.
func Template(o object.Object) int { return object.Number(o, "spec", "template", "version") }

// Scale sets how many pods an owner or a revision is to have.
func (w *World) Scale(v *server.Version, n int) {
	if v.Object == nil || v.Count() == n {
		return
	}
	w.Server.Change(v.Kind.Resource, v.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) { object.Need(o, "spec")[v.Kind.Count] = int64(n) })
}

// InWorkload reports whether the workload's selector matches an object.
func InWorkload(o object.Object) bool {
	return object.Text(o, object.Metadata, labels, AppLabel) == OwnerName
}

// Collect is the pod garbage collector: a pod that runs nowhere goes.
func (w *World) Collect() {
	if w.over {
		return
	}
	for _, pod := range w.Server.Objects(object.Pods) {
		by := object.Controller(pod.Object)
		orphan := by != "" && w.ownerUIDs()[by] == "" && !w.Uncollected
		switch {
		case object.Ended(pod.Object):
			if !object.Terminating(pod.Object) {
				w.Server.Remove(pod)
			}
		case orphan:
			w.Server.DeletePod(pod.Name, w.Profile.Grace)
		}
	}
	for _, rs := range w.Server.Objects(object.ReplicaSets) {
		if by := object.Controller(rs.Object); by != "" && w.ownerUIDs()[by] == "" && !w.Uncollected {
			w.Server.Remove(rs)
		}
	}
	w.After(w.Dice("collect", strconv.Itoa(w.Steps)).Span(20*time.Second, 60*time.Second), w.Collect)
}

// DeleteOwner deletes the workload. The garbage collector removes by and by what it owns. orphans says that its ReplicaSets are left alone.
func (w *World) DeleteOwner(orphans bool) {
	v := w.Owner()
	for _, rs := range w.Server.Objects(object.ReplicaSets) {
		if orphans && object.Controller(rs.Object) == object.UID(v.Object) {
			w.Server.Change(object.ReplicaSets, rs.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) {
				delete(object.Need(o, object.Metadata), "ownerReferences")
			})
		}
	}
	w.Server.Remove(v)
}

// adopt has a Deployment take over the ReplicaSets that it selects and that have no controller.
func (w *World) adopt(d *server.Version) {
	for _, rs := range w.Server.Objects(object.ReplicaSets) {
		if object.Controller(rs.Object) == "" && InWorkload(rs.Object) {
			w.Server.Change(object.ReplicaSets, rs.Name, server.Writer{Manager: ControllerManager}, func(o object.Object) {
				object.Need(o, object.Metadata)["ownerReferences"] = object.ControlledBy(d.Kind, d.Object)
			})
		}
	}
}

// ownerUIDs are the UIDs of everything that controls something.
func (w *World) ownerUIDs() map[string]string {
	out := map[string]string{}
	for _, resource := range []string{object.Deployments, object.ReplicaSets, object.StatefulSets, object.Jobs} {
		for _, v := range w.Server.Objects(resource) {
			out[object.UID(v.Object)] = v.Name
		}
	}
	return out
}

// Relabel takes a pod out of its workload: another one runs in its place.
func (w *World) Relabel(pod string) {
	w.Server.Change(object.Pods, pod, server.Writer{Manager: "kubectl-label"}, func(o object.Object) { object.SetText(o, labels, AppLabel, "debug") })
}
