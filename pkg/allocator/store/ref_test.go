package store

import "testing"

// refOf returns the Ref of a workload of one of the four kinds.
func refOf(t *testing.T, kind string) Ref {
	t.Helper()
	ref, err := ParseRef(kind+"/"+testName, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
