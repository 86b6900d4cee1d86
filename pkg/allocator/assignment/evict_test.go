package assignment_test

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestTheAnnotationSaysHowManyIDsMayBeWithoutAPod(t *testing.T) {
	type says struct {
		limit   int
		problem string
	}
	none := func(text string) says {
		return says{1, "annotation idalloc.dev/evict: not a number, a percentage or never: " + text}
	}
	for text, want := range map[string]says{
		"2": {limit: 2}, "25%": {limit: 2}, "5%": {limit: 1}, "100%": {limit: 10}, "500%": {limit: 10}, "20": {limit: 20}, "never": {}, "0": {}, "0%": {},
		"": none(`""`), "-1": none(`"-1"`), "-1%": none(`"-1%"`), "x": none(`"x"`), "%": none(`"%"`), "0.5": none(`"0.5"`), "never%": none(`"never%"`),
	} {
		limit, problem := assignment.EvictLimit(map[string]string{assignment.EvictKey: text}, 10)
		got := says{limit: limit}
		if problem != nil {
			got.problem = problem.Error()
		}
		if got != want {
			t.Errorf("%q of 10: %v, want %v", text, got, want)
		}
	}
	if limit, problem := assignment.EvictLimit(nil, 10); limit != 1 || problem != nil {
		t.Errorf("without the annotation: %d, %v", limit, problem)
	}
}
