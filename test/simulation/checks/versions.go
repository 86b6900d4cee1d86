package checks

import (
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// checkLeft reports a write of a process on what it has to leave as it is: a later format, or another annotation key.
func (j *Judge) checkLeft(v *server.Version) {
	p := j.w.Serving
	if p == nil || !v.Before.Exists() {
		return
	}
	slots, row := j.w.Leaves(p, v.Before)
	if slots {
		j.reportf(versions, "%s writes a map that it cannot read", p.ID)
	}
	if row && changed(v, assignment.PartitionKeys()) {
		j.reportf(versions, "%s writes owners of partitions that it cannot read", p.ID)
	}
}

// changed reports whether a version has another value of one of the keys than the one before it.
func changed(v *server.Version, keys []string) bool {
	for _, key := range keys {
		if object.Annotation(v.Object, key) != object.Annotation(v.Before.Object, key) {
			return true
		}
	}
	return false
}
