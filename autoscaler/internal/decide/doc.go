// Package decide decides what an autoscaler does next: nothing, write a target for the partitions, or change the number of pods. It is
// pure: it reads no clock and does no I/O. The caller provides the owner's state and how fast each partition grows.
//
// The owner itself is the state, with the time of the last scaling. A Decider only remembers since when other conditions have been true,
// and a new one learns that by watching. So nothing special is needed after a restart, after a crash between two writes, or when another
// writer or kubectl scale interferes: the next decision starts from what is there. A record of what is under way could be wrong, and each
// reader would have to compare it with what is there. Each write compares what was read, so leader election only saves requests.
//
// These hold for every decision:
//
//   - Nothing is decided while a partition is not where the target in force has it, or while data is missing or old.
//   - A target names only ids that are members. So pods come first, then their partitions.
//   - The number of pods falls only below ids that own nothing. So partitions go first, then their pods.
//   - Scaling up waits for --after-up since the number of pods last changed, scaling down for --after-down, no matter which program changed it
//     and in which direction. While another program takes steps towards the number that was published for it, they start no wait, and that
//     number stands.
//   - Pods go only if fewer would have been enough for all of --after-down, with some capacity to spare. Time in which partitions moved or
//     no process looked does not count.
package decide
