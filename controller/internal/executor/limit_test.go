package executor

import "testing"

func TestTheAnnotationSaysHowManyIDsMayBeWithoutAPod(t *testing.T) {
	for text, want := range map[string]int{"": 1, "2": 2, "25%": 2, "5%": 1, "100%": 10, "never": 0, "0": 0, "0%": 0, "-1": 1, "some": 1} {
		if got := limit(text, 10); got != want {
			t.Errorf("%q of 10: %d, want %d", text, got, want)
		}
	}
}
