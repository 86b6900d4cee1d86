package packing

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata are what Pack does by example: from a line for each thing of an Input, it makes owners.
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
			text := out.Owners.String()
			if len(out.Oversized) > 0 {
				text += fmt.Sprintf(", oversized %v", out.Oversized)
			}
			return text
		}
	})
}

// read takes in a word: NAME=NUMBER, id ID=SET, or a speed.
func (in *Input) read(word string) (err error) {
	name, value, named := strings.Cut(word, "=")
	switch {
	case !named:
		var speed float64
		speed, err = strconv.ParseFloat(word, 64)
		in.Speeds = append(in.Speeds, speed)
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
