package assignment_test

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestTheAnnotationSaysWhereMachineNumbersBegin(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1024": 1024, "999999999": 999999999} {
		if first, problem := assignment.FirstNumber(map[string]string{assignment.FirstNumberKey: text}); first != want || problem != nil {
			t.Errorf("%q: %d, %v", text, first, problem)
		}
	}
	for _, text := range []string{"", "0", "-1", "01", "+1", "1.0", "1000000000", "many"} {
		if first, problem := assignment.FirstNumber(map[string]string{assignment.FirstNumberKey: text}); first != 0 || problem == nil {
			t.Errorf("%q: %d, %v", text, first, problem)
		}
	}
	if first, problem := assignment.FirstNumber(nil); first != 0 || problem != nil {
		t.Errorf("without the annotation: %d, %v", first, problem)
	}
}

func TestTheAnnotationSaysHowLongAnIDRests(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "10s": 10 * time.Second, "1h": time.Hour} {
		if after, problem := assignment.ReuseAfter(map[string]string{assignment.ReuseKey: text}); after != want || problem != nil {
			t.Errorf("%q: %s, %v", text, after, problem)
		}
	}
	for _, text := range []string{"", "10", "-1s", "2h", "never"} {
		if after, problem := assignment.ReuseAfter(map[string]string{assignment.ReuseKey: text}); after != 0 || problem == nil {
			t.Errorf("%q: %s, %v", text, after, problem)
		}
	}
	if after, problem := assignment.ReuseAfter(nil); after != 0 || problem != nil {
		t.Errorf("without the annotation: %s, %v", after, problem)
	}
}
