package pidlock

import "os"

// Inside reports whether this process runs in the pod, according to POD_NAME or IDALLOC_POD_NAME.
func Inside(pod string) bool {
	return pod == os.Getenv("POD_NAME") || pod == os.Getenv("IDALLOC_POD_NAME")
}
