package proposal

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata are the rules by example. testdata/README.md says how to read and how to write them.
func TestRules(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string { return new(play).run })
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
		d.Fatalf(t, "a case begins with setup, plan, then, sweep, target or made-room")
	}
	if err := s.read(d.CmdArgs, d.Input); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.Cmd == "setup" {
		p.setup = s
		return ""
	}
	in, err := s.input(d.Cmd == "sweep")
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	switch d.Cmd {
	case "made-room":
		return yesNo(MadeRoom(in.Pods, in.Me))
	case "target":
		if target, ok := Target(in.Count, in.State.Row, in.Partitions.Wish, 0, nil); ok {
			return strings.TrimSpace(entries(target))
		}
		return "unknown"
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
	case "then", "target":
		s := p.last.clone()
		s.in.State = after(s.in, p.came)
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
	for _, text := range []string{
		"count 2\nmpa 0=a", "count two", "map 0=a 0=b", "map a", "# why\n\npod a: gave it up", "pod a: waits for ever", "pod a: receipt x",
		"pod a\ngone c", "me a: joins now", "wants", "partitions 4", "vacant x",
	} {
		s := newScene()
		if err := s.read(nil, text); err == nil {
			t.Errorf("the mistake in %q is not found", text)
		}
	}
}
