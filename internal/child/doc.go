// Package child runs the command of "idalloc run" under an identity: one process at a time, which is
// stopped when its identity is not in force any more and started again with the next one.
//
// Runner starts a process and knows when it is gone, with all that it left behind: on Linux this
// process adopts the orphans below it (prctl(2), PR_SET_CHILD_SUBREAPER), kills them when the command
// has ended, and reaps them. On other systems only the command's process group is killed.
//
// Follower converges the process to the newest identity.
package child
