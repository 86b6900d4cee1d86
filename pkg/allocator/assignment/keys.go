package assignment

// FieldManager is the field manager of every write that idalloc makes to an owner or a pod.
const FieldManager = "idalloc"

// Annotation keys on the owner.
const (
	// DefaultKey carries the assignment itself; --annotation-key changes it.
	DefaultKey = "idalloc.dev/assignment"
	// EpochKey carries the epoch, a decimal that grows with every change.
	EpochKey = "idalloc.dev/epoch"
	// SealKey carries "<format>:<epoch>:<hash of the other keys>". Every write changes it.
	SealKey = "idalloc.dev/seal"
	// HandoverKey maps each requested slot to the pod that asks for it.
	HandoverKey = "idalloc.dev/handover"
	// UIDsKey maps each id to the first characters of its holder's UID, because a pod's name may be used again.
	UIDsKey = "idalloc.dev/uids"
	// FenceAfterKey carries the largest fence-after in use (strict mode).
	FenceAfterKey = "idalloc.dev/fence-after"
	// QuarantineKey carries the quarantined slots (strict mode).
	QuarantineKey = "idalloc.dev/quarantine"
)

// Keys on a pod.
const (
	// InstanceIDLabel is the label that shows a pod's id to Services and kubectl.
	InstanceIDLabel = "idalloc.dev/instance-id"
	// OwnerLabel is the label that names the owner of the pod's id, in the form of OwnerLabelValue.
	OwnerLabel = "idalloc.dev/owner"
	// ReceiptKey is the annotation with the pod's receipt.
	ReceiptKey = "idalloc.dev/receipt"
	// DeletionCostKey is Kubernetes' annotation that ranks the pods of a ReplicaSet for a
	// scale-down: of its Ready pods, those with the lowest cost are deleted first.
	DeletionCostKey = "controller.kubernetes.io/pod-deletion-cost"
)
