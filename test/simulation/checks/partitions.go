package checks

import (
	"fmt"
	"strconv"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// partHeld is who worked on a partition last.
type partHeld struct {
	p     *world.Process
	token int64
}

// lookAtPartitions reports partitions that two processes work on at this moment, and tokens that do not grow.
func (j *Judge) lookAtPartitions() {
	now := map[int]*world.Process{}
	for _, p := range j.w.Processes {
		if j.w.IsGhost(p) {
			continue
		}
		for k, token := range p.Working() {
			if other := now[k]; other != nil {
				j.reportf(exclusion, "partition %d: %s and %s", k, other.ID, p.ID)
			}
			now[k] = p
			last, known := j.parts[k]
			same := known && last.p.UID == p.UID // the next process of a pod may go on with its token
			if known && (token < last.token || (token == last.token && !same)) && j.w.Profile.Skew == 0 {
				j.reportf("fencing token", "partition %d: %s has %d, and before it %s had %d", k, p.ID, token, last.p.ID, last.token)
			}
			j.parts[k] = partHeld{p, token}
		}
	}
}

// partitionsMissing says what is missing until each partition is worked on, in balance.
func (j *Judge) partitionsMissing(owner *server.Version) string {
	if j.w.Profile.Partitions == 0 || owner.Count() == 0 {
		return ""
	}
	n, err := strconv.Atoi(object.Annotation(owner.Object, assignment.PartitionCountKey))
	if err != nil {
		return "nobody says how many partitions there are"
	}
	worked := map[int]string{}
	counts := map[string]int{}
	for _, p := range j.w.Processes {
		for k := range p.Working() {
			worked[k] = p.ID
			counts[p.ID]++
			if k >= n {
				return fmt.Sprintf("%s works on partition %d of %d", p.ID, k, n)
			}
		}
	}
	for k := range n {
		if worked[k] == "" {
			return fmt.Sprintf("nobody works on partition %d of %d", k, n)
		}
	}
	if object.Annotation(owner.Object, assignment.PartitionStrategyKey) != "sticky" {
		return ""
	}
	most := (n + owner.Count() - 1) / max(1, owner.Count())
	for p, has := range counts {
		if has > most {
			return fmt.Sprintf("%s works on %d of %d partitions, with %d pods", p, has, n, owner.Count())
		}
	}
	return ""
}
