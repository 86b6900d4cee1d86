package world

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestALineOfTheHistory(t *testing.T) {
	for _, at := range []time.Duration{0, 1, time.Second - 1, time.Minute, 12345*time.Second + 6, 1e6 * time.Second} {
		for _, about := range [][]string{nil, {"a"}, {"pod#1", "", "x"}} {
			want := fmt.Sprintf("%14.9f %-9s %s\n", at.Seconds(), "request", strings.Join(about, " "))
			if got := string(appendLine(nil, at, "request", about)); got != want {
				t.Errorf("the line is %q, want %q", got, want)
			}
		}
	}
	if got := string(appendLine(nil, time.Second, "longer than usual", nil)); got != "   1.000000000 longer than usual \n" {
		t.Errorf("the line is %q", got)
	}
}
