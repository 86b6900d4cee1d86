// Package tutorial runs docs/tutorial.md, docs/linked.md and docs/partitions.md as a reader would, each against a local control plane of its own.
//
// Two kinds of fenced blocks are run, in the order of the page, by bash in one directory that has a copy of config:
//
//   - ```sh tutorial: a script. It must succeed.
//   - ```console tutorial: lines that begin with "$ " are commands, and the lines below each are what it prints. A command with
//     such lines is repeated until it prints them, so write down what is true after a change, not what happens on the way.
//
// Names of pods in the page are examples. The first time that a name appears, it stands for the pod that is there; from then on it stands
// for that pod, and for no other. So the page can say that an id went to another pod, or that it did not. Times, revisions
// and nodes may be any.
package tutorial
