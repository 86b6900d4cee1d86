// Package process starts child processes that cannot outlive the program that
// started them. The local control plane and the process node run everything
// through it, so that a test binary that panics, times out or is killed leaves
// nothing behind.
//
// Three things together give that promise:
//
//   - each child leads a process group of its own; the whole group is killed
//     when its leader ends, as a container's processes end with its first one;
//   - the kernel kills each child when the thread that started it dies
//     (PR_SET_PDEATHSIG), and that thread lives as long as the Group;
//   - a guard, a small shell that reads the groups from a pipe, kills what is
//     left of them when the pipe's other end is gone. The kernel's signal reaches
//     only direct children; the guard reaches grandchildren too.
//
// It does not reach a process that left its group with setsid or setpgid.
// The package works on Linux only.
package process
