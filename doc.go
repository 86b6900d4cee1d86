// Package idalloc gives a Go program its id, or its partitions. Its API is stable: any program may rely on it.
//
// Most programs need only Run. It calls a function while this pod holds an id, ends the function's context when the id is revoked, and calls the function
// again with the next identity. The pod gives its slot away only after the function has returned, so two such functions never run under one id.
// RunPartitions does the same for partitions. Start is for programs with their own loop.
//
// The pod needs the environment variables POD_NAME and POD_NAMESPACE from the downward API; POD_UID is recommended. Its service account needs the Role in
// config/base, and in strict mode also the Role in config/strict.
//
// There is one exception to mutual exclusion. If a pod is force-deleted, or its Node object is deleted, while the node still runs the pod, another pod may
// get the id before this process notices. Options.FenceAfter (strict mode) closes this gap. Alternatively, pass Identity.Token or Partition.Token as a
// fencing token to the systems that the work writes to. The token of an identity fences an id, but not a share of the work that follows from id and count:
// see package identity.
//
// # Partitions
//
// Partitions are the queues, shards or key ranges of a workload. The user sets their number and their strategy on the Deployment, StatefulSet or Job
// (idalloc.dev/partition-count, idalloc.dev/partition-strategy). The pods divide them by this strategy. When pods come, go, fail and roll, a partition
// moves only after the work on it has stopped, and the work on all others continues. So no two calls for one partition run at the same time, in any pods,
// as long as each function returns when its context ends.
//
// A partition is only a number; the program decides what it stands for. If keys are spread over partitions by a hash and the number of partitions changes,
// a key may belong to two partitions for a moment, the old one and the new one. Choose a number that is large enough from the beginning.
package idalloc
