package assignment

// FieldManager is the field manager of every write that idalloc makes to an owner or a pod.
const FieldManager = "idalloc"

// Annotation keys on the owner. PartitionOwnersKey is another one.
const (
	// Key carries the assignment, also called the map: the name of the pod that should have each slot.
	Key = "idalloc.dev/assignment"
	// HandoverKey maps each requested slot to the pod that asks for it.
	HandoverKey = "idalloc.dev/handover"
)

// Keys returns the annotation keys that idalloc writes on an owner.
func Keys() []string { return []string{Key, HandoverKey, PartitionOwnersKey} }

// DeletionCostKey is Kubernetes' annotation that ranks the pods of a ReplicaSet for a scale-down: of its Ready pods, those with the lowest cost are deleted
// first.
const DeletionCostKey = "controller.kubernetes.io/pod-deletion-cost"

// KeepCostKey is an annotation of a pod template. If its value is KeepCost, idalloc leaves DeletionCostKey to the pod's user.
const (
	KeepCostKey = "idalloc.dev/deletion-cost"
	KeepCost    = "keep"
)
