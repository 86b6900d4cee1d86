// Package partition gives a Go program its partitions: those queues, shards or key ranges of the workload on which this pod, and no
// other, is to work. Its API is stable: any program may rely on it.
//
// The user says on the Deployment, StatefulSet or Job how many partitions there are (idalloc.dev/partition-count). The pods divide
// them by the strategy that the user names there. When pods come, go, fail and roll, a partition moves only after the work on it
// has stopped, and the work on all others goes on.
//
// Most programs need only Run. It calls a function for each partition, and ends the function's context when that one partition is
// to move. Start is for programs with a loop of their own.
//
// The pod needs what package context needs: POD_NAME and POD_NAMESPACE, and the Role in config/base.
//
// # What is exclusive
//
// No two calls for one partition run at the same time, in whichever pods, as long as each function returns when its context
// ends. The exceptions of package context hold here, too: a pod that is force-deleted while its node still runs it, unless there
// is strict mode (FenceAfter). Partition.Token is a fencing token for the systems that the work writes to: each later pod
// that owns the partition has a higher one.
//
// A partition is a number. What a number stands for is the program's matter. If keys are spread over partitions by a hash and
// the number of partitions changes, a key may belong to two partitions for a moment, the old one and the new one. Set a number
// that is large enough at the beginning.
//
// # Strategies
//
// Package placement has the strategies, the sets and the measures. It imports no Kubernetes client.
package partition
