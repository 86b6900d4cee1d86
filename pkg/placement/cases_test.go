package placement_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
	"github.com/idalloc/idalloc/test/measure"
)

// testdata/README.md says how to read the cases, and how to write them.
func TestCases(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string { return new(play).run })
}

// play is where a file of cases has got to.
type play struct {
	in       placement.Input
	strategy placement.Strategy
}

func (p *play) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd != "then" {
		p.in = placement.Input{}
	}
	if err := p.read(d); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.Cmd == "by-id" {
		o := placement.Owners{}
		for id := range p.in.Count {
			o[id] = placement.Range{ID: id, Count: p.in.Count, Partitions: p.in.Partitions}.Set()
		}
		return printed(o) + "\n"
	}
	if d.Cmd != "then" {
		var err error
		if p.strategy, err = placement.Named(d.Cmd); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	before := p.in
	p.in.Owners = p.strategy(p.in)
	return printed(p.in.Owners) + "\n" + measured(before, p.in.Owners) + "\n"
}

func (p *play) read(d *datadriven.TestData) error {
	for _, arg := range d.CmdArgs {
		var err error
		switch text := strings.Join(arg.Vals, ""); arg.Key {
		case "partitions":
			p.in.Partitions, err = strconv.Atoi(text)
		case "count":
			p.in.Count, err = strconv.Atoi(text)
		case "members":
			p.in.Members, err = readIDs(text)
		default:
			err = fmt.Errorf("%s is unknown", arg.Key)
		}
		if err != nil {
			return err
		}
	}
	for line := range strings.Lines(d.Input) {
		what, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		o, err := readOwners(text)
		switch {
		case err != nil:
			return err
		case what == "owners":
			p.in.Owners = o
		case what == "target":
			p.in.Target = o
		default:
			return fmt.Errorf("%s is unknown", what)
		}
	}
	return nil
}

func readIDs(text string) ([]int, error) {
	ids := []int{}
	if text == "" {
		return ids, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		id, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// readOwners reads what printed prints.
func readOwners(text string) (placement.Owners, error) {
	o := placement.Owners{}
	for part := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(part, "=")
		id, err := strconv.Atoi(key)
		if err != nil {
			return nil, err
		}
		if o[id], err = placement.Parse(value, placement.MaxCount); err != nil {
			return nil, err
		}
	}
	_, err := placement.ParseTarget(o.String(), placement.MaxCount) // which no partition may have two owners in
	return o, err
}

func printed(o placement.Owners) string {
	if len(o) == 0 {
		return "no member"
	}
	parts := make([]string, 0, len(o))
	for _, id := range o.IDs() {
		parts = append(parts, fmt.Sprintf("%d=%s", id, o[id]))
	}
	return strings.Join(parts, " ")
}

func measured(in placement.Input, after placement.Owners) string {
	return fmt.Sprintf("moves %d, at least %d; stickiness %.3f of all, %.3f of owned; balance degree %.3f",
		measure.Moves(in.Owners, after), measure.IdealMoves(in), measure.StickinessOfAll(in.Owners, after, in.Partitions),
		measure.Stickiness(in.Owners, after), measure.BalanceDegree(after))
}
