package assignment

import (
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// FirstNumberKey is the annotation of a pod template that asks for a machine number in addition to the id: the number of id 0. The user writes it.
const FirstNumberKey = "idalloc.dev/first-number"

// FirstNumber reads FirstNumberKey. Without the annotation, or if its value is invalid, it returns 0. The problem is nil unless the value is invalid.
func FirstNumber(annotations map[string]string) (first int, problem *ProblemError) {
	text, ok := annotations[FirstNumberKey]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > receipt.MaxFirst || strconv.Itoa(n) != text {
		return 0, &ProblemError{Key: FirstNumberKey, Detail: "not a number from 1 to 999999999 without leading zeros: " + quote(text)}
	}
	return n, nil
}

// ReuseKey is the annotation of an owner that sets how long the id of a pod that has ended rests before another pod gets it: a Go duration. The user writes
// it.
const ReuseKey = "idalloc.dev/reuse-after"

// RestsMessage is the form of the Event about an id that rests: the id, until when, and ReuseKey.
const RestsMessage = "id %d rests until %s, because its last pod ended a short time ago, or before idalloc-controller looked (annotation %s)"

// ReuseAfter reads ReuseKey. Without the annotation, or if its value is invalid, it returns 0. The problem is nil unless the value is invalid.
func ReuseAfter(annotations map[string]string) (after time.Duration, problem *ProblemError) {
	return durationIn(annotations, ReuseKey, 0, "10s")
}
