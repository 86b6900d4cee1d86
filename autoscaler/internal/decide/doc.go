// Package decide says what an autoscaler does next: nothing, write a target for the partitions, or change the number of pods. It is
// pure: it reads no clock and does no I/O. The caller shows it what stands on the owner and how fast each partition grows.
//
// What stands on the owner is the state, with the time of the last scaling. A Decider remembers only since when something else has been so,
// and a new one learns that by watching. So a restart, a crash between two writes, another writer and a hand on kubectl scale need no
// handling of their own: the next decision starts from what is there. A record of what is under way could be wrong, and each reader would
// compare it with what is there. Each write compares what was read, so leader election only saves requests.
//
// These hold for every decision:
//
//   - Nothing is decided while a partition is not where the target in force has it, or while data is missing or old.
//   - A target names only ids that are members. So pods come first, and their partitions after that.
//   - The number of pods falls only below ids that own nothing. So partitions go first, and their pods after that.
//   - Scaling up waits for --after-up since the number of pods changed, and scaling down for --after-down, whatever program changed it and which way.
//     Steps of another program towards the number that was published for it start no wait, and while it takes them, that number stands.
//   - Pods go only if fewer would have done all the time for --after-down, with some capacity to spare. Time in which partitions moved or
//     no process looked is not counted.
package decide
