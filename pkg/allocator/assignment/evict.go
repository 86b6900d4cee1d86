package assignment

import (
	"fmt"
	"strconv"
	"strings"
)

// EvictKey is the annotation of an owner that sets how many ids may be without an available pod because the controller removes pods: a number, a percentage
// of the count, or Never. The user writes it.
const EvictKey = "idalloc.dev/evict"

// DefaultEvict is the limit if EvictKey is absent or invalid: one id at a time.
const DefaultEvict = 1

// AdoptKey is the annotation of a ReplicaSet that lost its Deployment. If its value is the ReplicaSet's own name, the controller treats the ReplicaSet as a
// workload, although others of that Deployment exist.
const AdoptKey = "idalloc.dev/adopt"

// EvictLimit reads EvictKey. If the value is invalid, it returns DefaultEvict and a problem; otherwise the problem is nil.
func EvictLimit(annotations map[string]string, count int) (limit int, problem *ProblemError) {
	text, ok := annotations[EvictKey]
	if !ok {
		return DefaultEvict, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case text == Never:
		return 0, nil
	case err != nil || n < 0:
		return DefaultEvict, &ProblemError{Key: EvictKey, Detail: fmt.Sprintf("not a number, a percentage or %s: %s", Never, quote(text))}
	case n == 0:
		return 0, nil
	case percent:
		n = min(n, 100) * count / 100
	}
	return max(1, n), nil
}
