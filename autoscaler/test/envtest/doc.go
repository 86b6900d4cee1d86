// Package envtest tests the autoscaler against a real API server, with pods that really divide partitions among themselves.
package envtest
