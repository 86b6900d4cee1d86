// Sonyflake makes unique ids of 63 bits with github.com/sony/sonyflake, in up to 65,536 pods. The machine id in each of them is the id of
// the pod. The program writes the ids that it makes into a file, eight bytes each, big-endian.
//
// What to copy from it is Generator in generator.go, and its call in main.go. Before a generator makes its first id, it waits until its
// clock has passed what an earlier holder of the id can have written: passed in clock.go.
//
//	IDS_DIR                   where the file POD_NAME goes; default: the working directory
//	RATE                      how many ids to make in a second, at most 25,600; default 100
//	CLOCK_SKEW                the most by which two machines' clocks differ; default 500ms
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
package main
