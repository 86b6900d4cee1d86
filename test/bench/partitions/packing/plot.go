package main

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	gonumdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 32 * vg.Centimeter
	height = 18 * vg.Centimeter
	rows   = 2
	cols   = 3

	widest, highest = 16, 40 // what the axes end with
)

// draw draws a panel for each size of the steps: the algorithms by pods and by what moved, and the front of those that none beats in both.
// At rest nothing moves, so that panel has the legend instead.
func draw(means []score, path string) (err error) {
	panels := make([][]*plot.Plot, rows)
	for i := range panels {
		panels[i] = make([]*plot.Plot, cols)
	}
	for i, step := range steps() {
		of := slices.DeleteFunc(slices.Clone(means), func(m score) bool { return m.step != step })
		p, err := panel(of, step)
		if err != nil {
			return err
		}
		panels[i/cols][i%cols] = p
	}
	canvas := vgsvg.New(width, height)
	tiles := gonumdraw.Tiles{Rows: rows, Cols: cols, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(panels, tiles, gonumdraw.New(canvas)) {
		for j, c := range row {
			panels[i][j].Draw(c)
		}
	}
	f, err := os.Create(path) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = canvas.WriteTo(f)
	return err
}

func panel(means []score, step int) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = fmt.Sprintf("steps of up to %d %%", step)
	p.X.Label.Text, p.Y.Label.Text = "pods above the lower bound, %", "moved load R, in pods"
	if step == 0 {
		p.HideAxes()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "", "", ""
		p.Legend.Top, p.Legend.Left = true, true
	} else if err := addFront(p, means); err != nil {
		return nil, err
	}
	for i, m := range means {
		s, err := plotter.NewScatter(plotter.XYs{point(m)})
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = gonumdraw.GlyphStyle{Color: plotutil.Color(i), Shape: plotutil.Shape(i), Radius: vg.Points(4)}
		if step == 0 {
			p.Legend.Add(m.name, s)
		} else {
			p.Add(s)
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, widest, 0, highest // the same in all panels
	return p, nil
}

func point(m score) plotter.XY { return plotter.XY{X: 100 * m.overBound, Y: m.moved} }

// addFront connects those that no other is below in both.
func addFront(p *plot.Plot, means []score) error {
	p.Add(plotter.NewGrid())
	l, err := plotter.NewLine(front(means))
	if err != nil {
		return err
	}
	l.StepStyle, l.Color = plotter.PostStep, color.Gray{Y: 160}
	p.Add(l)
	return nil
}

func front(means []score) plotter.XYs {
	var points plotter.XYs
	for _, m := range means {
		if !slices.ContainsFunc(means, func(o score) bool {
			return o.overBound <= m.overBound && o.moved <= m.moved && (o.overBound < m.overBound || o.moved < m.moved)
		}) {
			points = append(points, point(m))
		}
	}
	slices.SortFunc(points, func(a, b plotter.XY) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
	return points
}
