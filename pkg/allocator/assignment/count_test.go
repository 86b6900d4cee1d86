package assignment_test

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestTheAnnotationSaysHowManyPodsRestartAtATime(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "3": 3, "50%": 5, "5%": 1, "100%": 10, "900%": 10, "20": 20} {
		if turns, problem := assignment.CountTurns(map[string]string{assignment.TurnsKey: text}, 10); turns != want || problem != nil {
			t.Errorf("%q of 10: %d, %v", text, turns, problem)
		}
	}
	for _, text := range []string{"", "0", "0%", "-1", "never", "%", "0.5"} {
		turns, problem := assignment.CountTurns(map[string]string{assignment.TurnsKey: text}, 10)
		if turns != 3 || problem == nil || problem.Key != assignment.TurnsKey {
			t.Errorf("%q of 10: %d, %v", text, turns, problem)
		}
	}
	for count, want := range map[int]int{1: 1, 3: 1, 4: 1, 5: 2, 7: 2, 8: 2, 100: 25} {
		if turns, problem := assignment.CountTurns(nil, count); turns != want || problem != nil {
			t.Errorf("of %d by default: %d, %v", count, turns, problem)
		}
	}
}

func TestTheAnnotationSaysHowLongTheCountMustStandStill(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "5s": 5 * time.Second, "1m": time.Minute} {
		if after, problem := assignment.SettleAfter(map[string]string{assignment.SettleKey: text}); after != want || problem != nil {
			t.Errorf("%q: %s, %v", text, after, problem)
		}
	}
	for _, text := range []string{"", "5", "-1s", "2h", "never"} {
		if after, problem := assignment.SettleAfter(map[string]string{assignment.SettleKey: text}); after != assignment.DefaultSettle || problem == nil {
			t.Errorf("%q: %s, %v", text, after, problem)
		}
	}
	if after, problem := assignment.SettleAfter(nil); after != 30*time.Second || problem != nil {
		t.Errorf("without the annotation: %s, %v", after, problem)
	}
}

func TestWhatIsInvalidIsNamed(t *testing.T) {
	problems := assignment.UserProblems(map[string]string{assignment.EvictKey: "x", assignment.TurnsKey: "x", assignment.SettleKey: "x", assignment.ReuseKey: "x", "a": "b"}, 3)
	if len(problems) != 4 {
		t.Errorf("%v", problems)
	}
	if problems = assignment.UserProblems(map[string]string{assignment.EvictKey: "never"}, 3); problems != nil {
		t.Errorf("%v", problems)
	}
}
