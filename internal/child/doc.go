// Package child runs the command of "idalloc run" under an identity, one process at a time. It stops the process when the identity is no longer valid, and
// starts the command again with the next identity. Package agent uses it.
//
// A Runner starts a process and knows when the process and everything that it started are gone. On Linux, this process adopts the orphans below it (prctl(2),
// PR_SET_CHILD_SUBREAPER), kills them when the command has ended, and reaps them. On other systems it only kills the command's process group.
//
// A Follower follows the newest identity, and starts and stops the command accordingly.
package child
