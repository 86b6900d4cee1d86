package packing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata are what Pack does by example: from a line for each thing of an Input, pack makes owners, and count numbers.
func TestCases(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			in := Input{Owners: placement.Owners{}}
			for line := range strings.Lines(d.Input) {
				for word := range strings.FieldsSeq(line) {
					if err := in.read(word); err != nil {
						d.Fatalf(t, "%s: %v", word, err)
					}
				}
			}
			out := Pack(in)
			if out.Pods != len(out.Owners) {
				d.Fatalf(t, "%d pods, and %d owners", out.Pods, len(out.Owners))
			}
			if d.Cmd == "count" {
				return fmt.Sprintf("%d pods, at least %d, %g moves", out.Pods, LowerBound(in), Moved(in.Speeds, in.Owners, out.Owners))
			}
			text := out.Owners.String()
			if len(out.Oversized) > 0 {
				text += fmt.Sprintf(", oversized %v", out.Oversized)
			}
			return text
		}
	})
}

// read takes in a word: NAME=NUMBER, id ID=SET, a speed, or SPEEDxTIMES.
func (in *Input) read(word string) (err error) {
	name, value, named := strings.Cut(word, "=")
	switch {
	case !named:
		var speed float64
		times := 1
		each, more, repeated := strings.Cut(word, "x")
		if speed, err = strconv.ParseFloat(each, 64); repeated && err == nil {
			times, err = strconv.Atoi(more)
		}
		in.Speeds = append(in.Speeds, slices.Repeat([]float64{speed}, times)...)
	case name == "capacity":
		in.Capacity, err = strconv.ParseFloat(value, 64)
	case name == "margin":
		in.Margin, err = strconv.ParseFloat(value, 64)
	case name == "min":
		in.Min, err = strconv.Atoi(value)
	case name == "max":
		in.Max, err = strconv.Atoi(value)
	default:
		var id int
		if id, err = strconv.Atoi(name); err == nil {
			in.Owners[id], err = placement.Parse(value, placement.MaxCount)
		}
	}
	return err
}
