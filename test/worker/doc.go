// Worker is the program of the tests. It logs every few milliseconds which id it acts under, so that package
// overlap can tell afterwards whether two pods ever had the same one.
//
//	worker files PROGRAM [ARGUMENT...]   runs a program, such as examples/fileworker, and logs what the files
//	                                     say that this program reads
//	worker linked                        claims an id through idalloc.Run and works under it
//	worker partitions                    works on partitions through idalloc.RunPartitions
//	worker share                         works on the partitions that the files name
//	worker env                           works under the id of its environment, and on its partitions, as a command of "idalloc run"
//	worker stopped                       a drain hook: succeeds when the work of "worker share" in the same pod has stopped
//	worker print                         prints the files; for images without a shell
//	worker crash                         makes process 1 of the container crash
//
// The first five need to know where the logs go:
//
//	PROBE_DIR           the directory of the logs; each pod appends to PROBE_DIR/<pod>.log, or for each partition to PROBE_DIR/<pod>#<number>.log
//	POD_NAME, POD_UID   whose log it is; without a name, the host's, which is the pod's in a container
//
// STOP_TIME is how long the work takes to stop after it was told to; 50ms by default. The files are in IDALLOC_DIR. What linked reads from its environment is described in linked.go.
package main
