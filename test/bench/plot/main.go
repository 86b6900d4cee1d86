// Plot draws the curves of the benchmark, time over number of pods, from its table:
//
//	go -C test/bench/plot run . -in claims.csv -out claims.svg
package main

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the result
)

const (
	width  = 16 * vg.Centimeter
	height = 11 * vg.Centimeter
)

// point is one run.
type point struct {
	protocol   string
	n, got     float64
	seconds    float64
	incomplete bool
}

func main() {
	in := flag.String("in", "claims.csv", "the benchmark's table of claims")
	out := flag.String("out", "claims.svg", "the picture")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in, out string) (err error) {
	f, err := os.Open(in) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	points, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	p, err := draw(points)
	if err != nil {
		return err
	}
	return p.Save(width, height, out)
}

// read reads the table. Its columns are found by their titles.
func read(r io.Reader) ([]point, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 {
		return nil, errors.New("there are no runs in it")
	}
	at := map[string]int{}
	for i, title := range lines[0] {
		at[title] = i
	}
	for _, title := range []string{"N", "protocol", "got an id", "total s"} {
		if _, ok := at[title]; !ok {
			return nil, fmt.Errorf("there is no column %q", title)
		}
	}
	var points []point
	for _, line := range lines[1:] {
		p := point{protocol: line[at["protocol"]]}
		for title, value := range map[string]*float64{"N": &p.n, "got an id": &p.got, "total s": &p.seconds} {
			if *value, err = strconv.ParseFloat(line[at[title]], 64); err != nil {
				return nil, fmt.Errorf("column %q: %w", title, err)
			}
		}
		p.incomplete = p.got < p.n
		points = append(points, p)
	}
	return points, nil
}

// draw makes one curve of each protocol. A run that the time limit ended is a cross: it would have gone
// on beyond it.
func draw(points []point) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "N pods claim at once"
	p.X.Label.Text = "pods"
	p.Y.Label.Text = "seconds until the last pod has its id"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	var names []string
	for _, point := range points {
		if !slices.Contains(names, point.protocol) {
			names = append(names, point.protocol)
		}
	}
	for i, name := range names {
		if err := curve(p, points, name, i); err != nil {
			return nil, err
		}
	}
	whole(&p.X)
	whole(&p.Y)
	return p, nil
}

// whole widens an axis to powers of ten, which are what it labels.
func whole(a *plot.Axis) {
	a.Min = math.Pow10(int(math.Floor(math.Log10(a.Min))))
	a.Max = math.Pow10(int(math.Ceil(math.Log10(a.Max))))
}

func curve(p *plot.Plot, points []point, name string, index int) error {
	var all, cut plotter.XYs
	for _, point := range points {
		if point.protocol != name || point.seconds <= 0 {
			continue
		}
		xy := plotter.XY{X: point.n, Y: point.seconds}
		all = append(all, xy)
		if point.incomplete {
			cut = append(cut, xy)
		}
	}
	line, marks, err := plotter.NewLinePoints(all)
	if err != nil {
		return err
	}
	line.Color, line.Width = plotutil.Color(index), vg.Points(1.5)
	marks.Color, marks.Shape = line.Color, plotutil.Shape(index)
	p.Add(line, marks)
	p.Legend.Add(name, line, marks)
	if len(cut) == 0 {
		return nil
	}
	crosses, err := plotter.NewScatter(cut)
	if err != nil {
		return err
	}
	crosses.Shape, crosses.Radius = plotutil.Shape(5), vg.Points(6)
	p.Add(crosses)
	p.Legend.Add(name+": stopped, not done", crosses)
	return nil
}
