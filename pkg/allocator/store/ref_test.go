package store

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// refOf returns the Ref of a workload of one of the four kinds.
func refOf(t *testing.T, kind string) kinds.Ref {
	t.Helper()
	ref, err := kinds.ParseRef(kind+"/"+testName, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
