package assignment

import (
	"strconv"
	"strings"
	"time"
)

// OnCountKey is the annotation of a pod template that sets what happens to the controller's pods when the count changes. The user writes it.
const OnCountKey = "idalloc.dev/on-count-change"

// The values of OnCountKey.
const (
	// OnCountKeep: running programs keep the count that they started with. This is the default.
	OnCountKeep = "keep"
	// OnCountRestart: all containers of a pod start again.
	OnCountRestart = "restart"
	// OnCountReplace: the controller evicts the pod.
	OnCountReplace = "replace"
)

// CountWatcher is the container that restarts all containers of a pod.
const CountWatcher = "idalloc-countwatch"

// TurnsKey is the annotation of an owner that sets how many available pods restart, or are replaced, at a time because the count changed: a number or a
// percentage of the count, rounded up. The user writes it.
const TurnsKey = "idalloc.dev/count-turns"

// defaultTurns is the percentage if TurnsKey is absent or invalid.
const defaultTurns = 25

// SettleKey is the annotation of an owner that sets how long the count must stay unchanged before pods restart or are replaced because of it: a Go
// duration. The user writes it.
const SettleKey = "idalloc.dev/settle-after"

// DefaultSettle is the time if SettleKey is absent or invalid. A HorizontalPodAutoscaler changes the count every 15 seconds.
const DefaultSettle = 30 * time.Second

// CountTurns reads TurnsKey. If the value is invalid, it returns the default and a problem; otherwise the problem is nil.
func CountTurns(annotations map[string]string, count int) (turns int, problem *ProblemError) {
	text, ok := annotations[TurnsKey]
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n <= 0 {
		if ok {
			problem = &ProblemError{Key: TurnsKey, Detail: "not a number above 0 or a percentage: " + quote(text)}
		}
		n, percent = defaultTurns, true
	}
	if percent {
		n = (min(n, 100)*count + 99) / 100
	}
	return max(1, n), problem
}

// SettleAfter reads SettleKey. If the value is invalid, it returns the default and a problem; otherwise the problem is nil.
func SettleAfter(annotations map[string]string) (after time.Duration, problem *ProblemError) {
	return durationIn(annotations, SettleKey, DefaultSettle, "30s")
}

// durationIn reads the annotation of this key, a duration of up to an hour. If the value is invalid, it returns the default and a problem with an example.
func durationIn(annotations map[string]string, key string, byDefault time.Duration, example string) (time.Duration, *ProblemError) {
	text, ok := annotations[key]
	if !ok {
		return byDefault, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return byDefault, &ProblemError{Key: key, Detail: "not a duration from 0s to 1h such as " + example + ": " + quote(text)}
	}
	return d, nil
}

// UserProblems returns the invalid values in the annotations that the controller reads for a workload.
func UserProblems(annotations map[string]string, count int) (problems []ProblemError) {
	_, evict := EvictLimit(annotations, count)
	_, turns := CountTurns(annotations, count)
	_, settle := SettleAfter(annotations)
	_, reuse := ReuseAfter(annotations)
	for _, p := range []*ProblemError{evict, turns, settle, reuse} {
		if p != nil {
			problems = append(problems, *p)
		}
	}
	return problems
}
