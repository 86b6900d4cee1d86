package rehearse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/rehearse"
)

func options() rehearse.Options {
	return rehearse.Options{
		Settings: decide.Settings{
			Capacity: 100, Min: 1, Every: 30 * time.Second, AfterUp: 3 * time.Minute, AfterDown: 5 * time.Minute, MaxAge: time.Minute,
			Patience: 2 * time.Minute, Spare: 0.1,
		},
		Pods: 1, Period: 5 * time.Second, Join: 20 * time.Second, Move: 5 * time.Second,
	}
}

func read(t *testing.T, text string) rehearse.Loads {
	t.Helper()
	l, err := rehearse.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnHourOfALoadThatComesAndGoes(t *testing.T) {
	var lines []string
	s := rehearse.Play(options(), read(t, "seconds,0,1,2,3\n0,10,10,10,10\n600,60,60,60,60\n1800,10,10,10,10\n3600,10,10,10,10\n"), func(l rehearse.Line) {
		lines = append(lines, l.String())
	})
	if s.Ups != 1 || s.Downs != 1 || s.Fewest != 1 || s.Most != 4 || s.Took != time.Hour {
		t.Errorf("%s\n%s", s, strings.Join(lines, "\n"))
	}
	for i, want := range []string{"scale 1 to 4", "assign", "assign", "scale 4 to 1"} {
		if len(lines) != 4 || !strings.Contains(lines[min(i, len(lines)-1)], want) {
			t.Fatalf("line %d: want %s\n%s", i, want, strings.Join(lines, "\n"))
		}
	}
	if !strings.Contains(lines[0], "10m0s") || !strings.Contains(lines[0], "id 0 has 240 of 100 units/s") {
		t.Errorf("the line does not say when and why: %s", lines[0])
	}
}

// Two pods work. If what is missing were nothing, one would be enough.
func TestAGapInTheDataIsNoZero(t *testing.T) {
	for gap, downs := range map[string]int{",": 0, ",60": 0, "0,0": 1} {
		o := options()
		o.Pods = 2
		s := rehearse.Play(o, read(t, "time,0,1\n2026-11-23T00:00:00Z,60,60\n2026-11-23T00:01:00Z,"+gap+"\n2026-11-23T00:59:00Z,60,60\n"), func(rehearse.Line) {})
		if s.Downs != downs || s.Ups != 0 && downs == 0 {
			t.Errorf("with %q for an hour: %s", gap, s)
		}
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "the first line",
		"seconds\n0\n":              "1 columns",
		"seconds,0,2\n0,1,1\n":      `called "2", and must be 1`,
		"seconds,0\n":               "no line with loads",
		"seconds,0\nsoon,1\n":       `line 2: "soon" is neither`,
		"seconds,0\n0,-1\n":         `partition 0: "-1" is no speed`,
		"seconds,0\n0,NaN\n":        "is no speed",
		"seconds,0\n5,1\n5,1\n":     "line 3: it is not later",
		"seconds,0\n0,1,2\n":        "wrong number of fields",
		"seconds,0\n" + "1e300,1\n": "is neither",
		fmt.Sprintf("s%s\n", strings.Repeat(",0", 5000)): "5001 columns",
	} {
		if _, err := rehearse.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}
