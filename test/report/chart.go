package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

// Sizes in pixels.
const (
	perSecond    = 12.0
	narrowest    = 1100.0
	widest       = 16000.0
	axisHeight   = 22.0
	laneHeight   = 16.0
	rowHeight    = 24.0
	barHeight    = 18.0
	overviewRow  = 8.0
	thinnest     = 0.8   // of a bar: what is shorter shall still be seen
	letter       = 6.2   // of the text in a bar
	tickDistance = 100.0 // at least
	podColours   = 12
)

// chart is the timeline of one workload: a row for each id, a lane for each kind of fault.
type chart struct {
	// ID makes the names of its parts unique on the page.
	ID            string
	Name          string
	Width, Height float64
	Ticks         []tick
	Lanes         []lane
	Rows          []row
	// Top is where the rows begin, Bottom where they end, Depth the difference.
	Top, Bottom, Depth float64
	// Overview is the same in a height of its own, scaled to the width of the page.
	OverviewX, OverviewY, OverviewWidth, OverviewHeight float64
	Slots                                               []slotRow
	Clashes                                             int
}

type tick struct {
	X    float64
	Text string
}

type lane struct {
	Y     float64
	Name  string
	Class string
	Marks []mark
}

// mark is a fault: an area, or a line where its width is 0.
type mark struct {
	X, Width float64
	Title    string
}

type row struct {
	Y       float64
	Name    string
	Bars    []bar
	Clashes []bar
}

type bar struct {
	X, Y, Width float64
	Class       string
	Title       string
	Text        string
	TextX       float64
	TextY       float64
}

// drawing holds what places things in one chart.
type drawing struct {
	span
	scale float64 // pixels for a nanosecond
}

func newChart(n int, w history.Workload, checked overlap.Report, faults []history.Fault, classes map[string]string, s span) chart {
	seconds := time.Duration(s.to - s.from).Seconds()
	c := chart{ID: strconv.Itoa(n), Name: w.Name, Width: math.Round(min(widest, max(narrowest, perSecond*seconds)))}
	d := drawing{span: s, scale: c.Width / float64(s.to-s.from)}
	all := intervals(w.Records)
	c.Slots = slotRows(checked, all, s)
	c.Ticks = d.ticks()
	y := axisHeight
	c.Lanes, y = d.lanes(w.Name, faults, classes, y)
	c.Top = y + 4
	c.Rows, c.Bottom = d.rows(all, c.Top)
	c.Clashes = d.mark(c.Rows, clashes(all))
	c.Height, c.Depth = c.Bottom+4, c.Bottom-c.Top
	c.OverviewWidth = narrowest
	c.OverviewX, c.OverviewY = digits(narrowest/c.Width), overviewRow/rowHeight
	c.OverviewHeight = digits(c.Depth * c.OverviewY)
	return c
}

func (d drawing) x(t int64) float64 { return digits(float64(t-d.from) * d.scale) }

// at returns how long after the begin t is.
func (d drawing) at(t int64) string { return brief(time.Duration(t - d.from)) }

func (d drawing) ticks() []tick {
	steps := []time.Duration{
		time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if float64(s)*d.scale >= tickDistance {
			step = s
			break
		}
	}
	var all []tick
	for t := d.from; t <= d.to; t += int64(step) {
		all = append(all, tick{d.x(t), time.Duration(t - d.from).String()})
	}
	return all
}

// lanes draws the faults of a workload, a lane for each kind, and returns where the next thing begins.
func (d drawing) lanes(workload string, faults []history.Fault, classes map[string]string, y float64) (all []lane, next float64) {
	byKind := map[string][]mark{}
	for _, f := range faults {
		if f.Workload != "" && f.Workload != workload {
			continue
		}
		title := fmt.Sprintf("%s %s at %s", f.Kind, f.What, d.at(f.At))
		m := mark{X: d.x(f.At)}
		if f.Until > f.At {
			m.Width = max(thinnest, digits(float64(f.Until-f.At)*d.scale))
			title += " for " + brief(time.Duration(f.Until-f.At))
		}
		m.Title = title
		byKind[f.Kind] = append(byKind[f.Kind], m)
	}
	for _, name := range slices.Sorted(maps.Keys(byKind)) {
		all = append(all, lane{Y: y, Name: name, Class: classes[name], Marks: byKind[name]})
		y += laneHeight
	}
	return all, y
}

func (d drawing) rows(all []interval, y float64) (rows []row, bottom float64) {
	colours := map[string]int{}
	byID := map[int][]interval{}
	for _, i := range all {
		if _, seen := colours[i.pod]; !seen {
			colours[i.pod] = len(colours) % podColours
		}
		byID[i.id] = append(byID[i.id], i)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		r := row{Y: y, Name: strconv.Itoa(id)}
		for _, i := range byID[id] {
			r.Bars = append(r.Bars, d.bar(i, y, colours[i.pod]))
		}
		rows = append(rows, r)
		y += rowHeight
	}
	return rows, y
}

func (d drawing) bar(i interval, y float64, colour int) bar {
	b := bar{
		X: d.x(i.from), Y: y + (rowHeight-barHeight)/2, Width: max(thinnest, digits(float64(i.to-i.from)*d.scale)), Class: "h" + strconv.Itoa(colour),
		Title: fmt.Sprintf("id %d: %s, token %d, from %s to %s (%s)", i.id, i.pod, i.token, d.at(i.from), d.at(i.to), brief(time.Duration(i.to-i.from))),
	}
	if i.quiet {
		b.Class += " quiet"
		b.Title += ", logged nothing in this time"
		return b
	}
	b.TextX, b.TextY = b.X+4, b.Y+barHeight-5
	if fits := int((b.Width - 8) / letter); fits >= 5 {
		b.Text = i.pod[max(0, len(i.pod)-fits):]
	}
	return b
}

// mark draws what two pods showed at once over the rows, and returns how often that was.
func (d drawing) mark(rows []row, found []clash) int {
	for _, c := range found {
		for i := range rows {
			if rows[i].Name != strconv.Itoa(c.id) {
				continue
			}
			rows[i].Clashes = append(rows[i].Clashes, bar{
				X: d.x(c.from), Y: rows[i].Y, Width: max(2, digits(float64(c.to-c.from)*d.scale)),
				Title: fmt.Sprintf("id %d: %s and %s both showed it from %s to %s", c.id, c.pods[0], c.pods[1], d.at(c.from), d.at(c.to)),
			})
		}
	}
	return len(found)
}

// digits keeps the page small: hundredths of a pixel are enough.
func digits(x float64) float64 { return math.Round(x*100) / 100 }
