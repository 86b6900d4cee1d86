// Package packing packs partitions by their load into few pods, and moves little. It is pure: it does no I/O, reads no clock and imports
// nothing but pkg/placement. So an autoscaler, a simulation and a command that only shows what would happen can share it.
//
// An [Input] contains the speed of each partition, the capacity of a pod, and who owns what now. A [Packing] contains how many pods there
// should be and who should own what. It is a target for the strategy external of pkg/placement. [Pack] returns one:
//
//	packed := packing.Pack(packing.Input{Speeds: speeds, Capacity: 1000, Owners: owners})
//	cost := packing.Moved(speeds, owners, packed.Owners) / 1000 // in loads of a pod
//
// # How Pack packs
//
//  1. What fits stays. A pod that holds too much gives away the least load that makes it fit: the best of all sets of up to ten
//     partitions, and nearly the best of more.
//  2. What was given away, and what no pod owns, goes to other pods, the largest first. New pods are opened only for what fits nowhere.
//     Then each partition goes to the lightest pod, if all of them fit into as many pods that way, because light pods have room for growth.
//  3. The pod with the highest id is closed if its partitions fit elsewhere, then the next one, and so on. A pod that takes over from it
//     keeps a fiftieth of its capacity free. Smaller partitions may make room for larger ones, and then move elsewhere. The limit of what
//     may move that way for one pod is 20 capacities, times the fraction by which there are more pods than [LowerBound]: one capacity at
//     5 % more, five at 25 %.
//
// Kubernetes ends the pods with the highest ids, so only these are closed, and what [Moved] counts is what really moves. No pod is
// renumbered.
//
// If Max pods cannot hold the load, it is spread evenly: no pod has more than a sixteenth above the even share, if such a division is
// found, and each pod still keeps what it can.
//
// # What it promises
//
// Each partition has one owner among the ids 0 to Pods-1. No pod holds more than the capacity, up to a billionth, unless one partition
// alone is larger or Max applies. The same input gives the same packing. Pack leaves its own result unchanged. So while the loads stay the
// same, nothing moves twice.
//
// # What it does not promise
//
// Fewer pods may be able to hold the load. Finding the fewest is NP-hard, and the last pods are the most expensive to close. With
// partitions of about half a pod, there are about 6 % more pods than the lower bound. With many small ones there are about 2 % more, which
// is the fiftieth that is kept free. A pod stays open if its load would fill the other pods to the brim.
//
// One packing knows nothing about the next. A load that swings a lot makes pods come and go; the caller decides how often to pack.
package packing
