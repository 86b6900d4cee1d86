package main

import (
	"cmp"
	_ "embed" // the template
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

//go:embed page.html
var pageText string

// page is what the template shows.
type page struct {
	Title      string
	Cards      []card
	Kinds      []kind
	Charts     []chart
	Violations []string
	Notes      []string
}

type card struct {
	Name, Value string
	Bad         bool
}

// kind is a row of the table of faults.
type kind struct {
	Name  string
	Class string
	Count int64
	// Longest and Total are durations of those that have one.
	Longest, Total string
}

// slotRow is a row of the table of ids.
type slotRow struct {
	ID, Holders                 int
	Held, MedianGap, LongestGap string
}

func newPage(run history.Run) (page, error) {
	p := page{Title: cmp.Or(run.Title, "A run that did not end"), Notes: run.Notes, Violations: slices.Clone(run.Violations)}
	span := spanOf(run)
	classes := kindClasses(run)
	samples, pods := 0, 0
	for _, w := range run.Workloads {
		checked, err := overlap.Check(w.Records)
		if err != nil && len(checked.Violations) == 0 && !errors.Is(err, overlap.ErrNoSamples) {
			return p, err
		}
		if run.Judged {
			checked.Violations = nil
		}
		for _, v := range checked.Violations {
			p.Violations = append(p.Violations, w.Name+": "+v)
		}
		samples, pods = samples+checked.Samples, pods+len(checked.Pods)
		p.Charts = append(p.Charts, newChart(len(p.Charts), w, checked, run.Injected, classes, span))
	}
	p.Kinds = kinds(run, classes)
	injected := int64(0)
	for _, k := range p.Kinds {
		injected += k.Count
	}
	p.Cards = []card{
		{Name: "violations", Value: group(int64(len(p.Violations))), Bad: len(p.Violations) > 0},
		{Name: "faults injected", Value: group(injected)},
		{Name: "histories checked", Value: group(run.Histories)},
	}
	if run.Steps > 0 {
		p.Cards = append(p.Cards, card{Name: "steps", Value: group(run.Steps)})
	}
	p.Cards = append(p.Cards,
		card{Name: "drawn here", Value: time.Duration(span.to - span.from).Round(time.Second).String()},
		card{Name: "pods", Value: group(int64(pods))}, card{Name: "samples", Value: group(int64(samples))})
	if run.Seed != "" {
		p.Cards = append(p.Cards, card{Name: "seed", Value: run.Seed})
	}
	return p, nil
}

func (p page) write(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// span is the time that is drawn.
type span struct{ from, to int64 }

func spanOf(run history.Run) span {
	s := span{math.MaxInt64, math.MinInt64}
	add := func(t int64) { s.from, s.to = min(s.from, t), max(s.to, t) }
	for _, w := range run.Workloads {
		for _, r := range w.Records {
			add(r.Before)
			add(r.After)
		}
	}
	for _, f := range run.Injected {
		add(f.At)
		add(max(f.At, f.Until))
	}
	if s.from > s.to {
		return span{0, 1}
	}
	return span{s.from, max(s.to, s.from+1)}
}

// kindColours is how many colours of faults the page has.
const kindColours = 10

// kindClasses gives each kind of fault its colour.
func kindClasses(run history.Run) map[string]string {
	names := map[string]string{}
	for _, f := range run.Injected {
		names[f.Kind] = ""
	}
	for name := range run.Faults {
		names[name] = ""
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		names[name] = "k" + strconv.Itoa(i%kindColours)
	}
	return names
}

func kinds(run history.Run, classes map[string]string) []kind {
	count, longest, total := maps.Clone(run.Faults), map[string]time.Duration{}, map[string]time.Duration{}
	if count == nil {
		count = map[string]int64{}
	}
	for _, f := range run.Injected {
		count[f.Kind]++
		if f.Until > f.At {
			d := time.Duration(f.Until - f.At)
			longest[f.Kind], total[f.Kind] = max(longest[f.Kind], d), total[f.Kind]+d
		}
	}
	rows := make([]kind, 0, len(count))
	for _, name := range slices.Sorted(maps.Keys(count)) {
		k := kind{Name: name, Class: classes[name], Count: count[name]}
		if total[name] > 0 {
			k.Longest, k.Total = brief(longest[name]), brief(total[name])
		}
		rows = append(rows, k)
	}
	return rows
}

func slotRows(checked overlap.Report, all []interval, s span) []slotRow {
	held := map[int]int64{}
	for _, i := range all {
		held[i.id] += i.to - i.from
	}
	rows := make([]slotRow, 0, len(checked.Slots))
	for _, id := range slices.Sorted(maps.Keys(checked.Slots)) {
		slot := checked.Slots[id]
		row := slotRow{ID: id, Holders: len(slot.Holders), Held: fmt.Sprintf("%.1f %%", 100*float64(held[id])/float64(s.to-s.from))}
		if len(slot.Holders) > 1 {
			row.MedianGap, row.LongestGap = brief(slot.MedianGap), brief(slot.MaxGap)
		}
		rows = append(rows, row)
	}
	return rows
}

// brief returns a duration with three digits or so.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.String()
}

// group returns 1234567 as 1,234,567.
func group(n int64) string {
	text := strconv.FormatInt(n, 10)
	var parts []string
	for len(text) > 3 {
		parts = append(parts, text[len(text)-3:])
		text = text[:len(text)-3]
	}
	parts = append(parts, text)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
