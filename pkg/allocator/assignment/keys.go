package assignment

// FieldManager is the name under which every write to an owner or a pod is made.
const FieldManager = "idalloc"

// Annotation keys on the owner.
const (
	// DefaultKey carries the assignment itself; --annotation-key changes it.
	DefaultKey = "idalloc.dev/assignment"
	// EpochKey carries the epoch, a decimal that grows with every change.
	EpochKey = "idalloc.dev/epoch"
	// SealKey carries "<format>:<epoch>:<hash of the other keys>"; it differs at every write.
	SealKey = "idalloc.dev/seal"
	// HandoverKey carries the slots that are asked for, id to requester.
	HandoverKey = "idalloc.dev/handover"
	// UIDsKey carries, for each id, the beginning of its holder's UID: a pod's name may be used again.
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
	// OwnerLabel is the label that shows whose id it is, as OwnerLabelValue writes it.
	OwnerLabel = "idalloc.dev/owner"
	// ReceiptKey is the annotation with the pod's receipt.
	ReceiptKey = "idalloc.dev/receipt"
	// DeletionCostKey is Kubernetes' annotation that ranks the pods of a ReplicaSet for a
	// scale-down: among Ready pods the lowest cost goes first.
	DeletionCostKey = "controller.kubernetes.io/pod-deletion-cost"
)
