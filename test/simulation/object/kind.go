package object

// Kinds of objects, by their resource.
const (
	Pods         = "pods"
	Deployments  = "deployments"
	ReplicaSets  = "replicasets"
	StatefulSets = "statefulsets"
	Jobs         = "jobs"
	Leases       = "leases"
)

// Kind is what differs between kinds of objects.
type Kind struct {
	Resource, Name, Group, APIVersion string
	// Count is the field below spec that says how many pods there are to be.
	Count string
	// AnnotationsCount says that a change of annotations raises metadata.generation, as only a Deployment's does.
	AnnotationsCount bool
}

// KindOf returns the kind of a resource. One that is not known has no name.
func KindOf(resource string) Kind {
	switch resource {
	case Pods:
		return Kind{Resource: Pods, Name: "Pod", APIVersion: "v1"}
	case Deployments:
		return Kind{Deployments, "Deployment", "apps", "apps/v1", "replicas", true}
	case ReplicaSets:
		return Kind{ReplicaSets, "ReplicaSet", "apps", "apps/v1", "replicas", false}
	case StatefulSets:
		return Kind{StatefulSets, "StatefulSet", "apps", "apps/v1", "replicas", false}
	case Jobs:
		return Kind{Jobs, "Job", "batch", "batch/v1", "parallelism", false}
	case Leases:
		return Kind{Resource: Leases, Name: "Lease", Group: "coordination.k8s.io", APIVersion: "coordination.k8s.io/v1"}
	}
	return Kind{Resource: resource}
}

// ControlledBy is the ownerReferences of what an owner of this kind controls.
func ControlledBy(k Kind, owner Object) []any {
	return []any{Object{
		"apiVersion": k.APIVersion, "kind": k.Name, "name": Name(owner), "uid": UID(owner), "controller": true, "blockOwnerDeletion": true,
	}}
}
