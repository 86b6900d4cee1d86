package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The cases in testdata are the rules of docs/protocol.md by example. testdata/README.md says how to read and how to write them.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, file, new(play).run)
		})
	}
}

// play is where a file of cases has got to.
type play struct {
	setup scene // what holds for each of the cases that follow
	last  scene // the latest case, and what it came to
	came  Decision
}

func (p *play) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s, ok := p.start(d.Cmd)
	if !ok {
		d.Fatalf(t, "a case begins with setup, plan, then, sweep or made-room")
	}
	if n, err := s.read(d.CmdArgs, d.Input); err != nil {
		t.Fatalf("%s: %v", lineOf(d.Pos, n), err)
	}
	if d.Cmd == "setup" {
		p.setup = s
		return ""
	}
	in, err := s.input(d.Cmd == "sweep")
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if podNamed(in, in.Me).Name == "" && d.Cmd != "sweep" && d.Cmd != "made-room" {
		d.Fatalf(t, "me, %s, is no pod", in.Me)
	}
	if d.Cmd == "made-room" {
		return yesNo(MadeRoom(in.Pods, in.Me))
	}
	p.last, p.came = s, Plan(in)
	return tell(in, p.came)
}

// start returns what is known before the lines of a case are read.
func (p *play) start(command string) (scene, bool) {
	switch command {
	case "setup":
		return newScene(), true
	case "plan", "sweep", "made-room":
		return p.setup.clone(), true
	case "then":
		s := p.last.clone()
		s.in.State = after(s.in, p.came)
		if p.came.Next != nil && s.in.Trust != assignment.Untracked {
			s.in.Trust = assignment.Clean
			if s.in.State.Partitions != nil {
				s.in.Partitions.Trust = assignment.Clean
			}
		}
		return s, true
	}
	return scene{}, false
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func TestACaseWithAMistakeIsRefused(t *testing.T) {
	for text, line := range map[string]int{
		"count 2\nclaen map 0=a":        2,
		"count two":                     1,
		"clean map 0=a 0=b":             1,
		"clean map a":                   1,
		"# why\n\npod a: gave it up":    3,
		"pod a: waits for ever":         1,
		"pod a: receipt 0 of epoch x":   1,
		"pod a\npod b\ngone c\ncount 1": 3,
		"pod a: hands over":             1,
		"pod a: waits, receipt 0":       1,
		"quarantine 4":                  1,
		"me a: moves, releases now":     1,
	} {
		s := newScene()
		if n, err := s.read(nil, text); err == nil || n != line {
			t.Errorf("%q: the mistake is in line %d, but it says %v in line %d", text, line, err, n)
		}
	}
	if got := lineOf("testdata/room.txt:10", 3); got != "testdata/room.txt:13" {
		t.Errorf("the third line after line 10 is said to be %s", got)
	}
}
