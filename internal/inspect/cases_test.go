package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata say what the commands for people tell of a workload. A case is a comment, a command, lines about the workload, ---- and what
// the command prints. An empty line ends it. The commands are
//
//	verify, verify table          the report, and after that the table of partitions; "finds" is what a program reads of a finding
//	get, get wide                 the table of ids
//	partitions, partitions wide   the table of partitions
//	explain z                     what pod z waits for
//	setup                         its lines hold for all cases up to the next setup
//
// The workload is a Deployment whose pods a, b and c have the ids 0, 1 and 2, unless lines say more: terms and podTerms have them all. Times count from
// the beginning. Run the test with -rewrite to write down what is printed now, and read the difference before you commit it.
func TestCases(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string { return new(play).run })
}

// play is where a file of cases has got to.
type play struct{ setup string }

func (p *play) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "setup" {
		p.setup = d.Input
		return ""
	}
	s, err := newScene(p.setup, d.Input)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	said := s.say(t, d)
	filled(t, said)
	return said
}

// say returns what a command prints.
func (s scene) say(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var b strings.Builder
	switch d.Cmd {
	case "verify":
		s.verified(t, &b)
		if d.HasArg("table") {
			s.divided(t, &b, false)
		}
	case "partitions":
		s.divided(t, &b, d.HasArg("wide"))
	case "get":
		if err := SlotColumns().Write(&b, s.view().Rows(s.now), d.HasArg("wide"), true); err != nil {
			t.Error(err)
		}
	case "explain":
		e := s.explain(d.CmdArgs[0].Key)
		b.WriteString(strings.Join(append([]string{e.Verdict}, e.Reasons...), "\n"))
	default:
		d.Fatalf(t, "a case begins with setup, verify, partitions, get or explain")
	}
	return b.String()
}

// verified writes what verify prints, and first what a program finds in its JSON.
func (s scene) verified(t *testing.T, b *strings.Builder) {
	t.Helper()
	r := reported(s.snapshot)
	if r.OK != (len(r.Findings) == 0) {
		t.Errorf("ok is %t with %d findings", r.OK, len(r.Findings))
	}
	for _, f := range r.Findings {
		b.WriteString("finds " + f.Kind)
		if f.ID != nil {
			fmt.Fprintf(b, " id=%d", *f.ID)
		}
		if f.Pod != "" {
			b.WriteString(" pod=" + f.Pod)
		}
		if f.Partitions != "" {
			b.WriteString(" partitions=" + f.Partitions)
		}
		b.WriteString("\n")
	}
	if err := r.Table(b); err != nil {
		t.Error(err)
	}
}

// divided writes what the table of partitions shows.
func (s scene) divided(t *testing.T, b *strings.Builder, wide bool) {
	t.Helper()
	v := s.partitionView()
	if len(v.Ranges) == 0 {
		b.WriteString(v.None())
		return
	}
	if err := PartitionColumns().Write(b, v.Rows(s.now), wide, true); err != nil {
		t.Error(err)
	}
}

func TestACaseWithAMistakeIsRefused(t *testing.T) {
	for _, text := range []string{
		"count two", "mpa 0=a", "map a", "map x=a", "pod a: gave it up", "pod a: waits for ever", "pod a: receipt x", "pod a: works on x", "now soon", "wants partitions", "owns x=0",
	} {
		if _, err := newScene(text); err == nil {
			t.Errorf("the mistake in %q is not found", text)
		}
	}
}
