package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	gonumdraw "gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the result
)

const (
	width  = 28 * vg.Centimeter
	height = 13 * vg.Centimeter
	apart  = 0.08 // between two strategies, where 1 is between two scripts
	legend = 1.8  // the width of the legend
)

// draw draws how many times the ideal each strategy moved, by script, for the largest size.
func draw(costs []cost, path string) error {
	p := plot.New()
	p.Title.Text = "Moves, as a multiple of the fewest that keep all members level"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.BackgroundColor = color.White
	last := costs[len(costs)-1].size
	var names []string
	points := map[string]plotter.XYs{}
	for _, c := range costs {
		if c.size != last || c.moves == 0 {
			continue
		}
		if len(names) == 0 || names[len(names)-1] != c.script {
			names = append(names, c.script)
		}
		points[c.contender] = append(points[c.contender], plotter.XY{X: float64(len(names) - 1), Y: c.overIdeal()})
	}
	playing := contenders()
	for i, c := range playing {
		if len(points[c.name]) == 0 {
			continue
		}
		for j := range points[c.name] { // beside each other, so that equal ones are seen
			points[c.name][j].X += apart * float64(i-len(playing)/2)
		}
		s, err := plotter.NewScatter(points[c.name])
		if err != nil {
			return err
		}
		s.GlyphStyle = gonumdraw.GlyphStyle{Color: plotutil.Color(i), Shape: plotutil.Shape(i), Radius: vg.Points(4)}
		p.Add(s)
		p.Legend.Add(c.name, s)
	}
	p.Add(plotter.NewGrid())
	p.NominalX(names...)
	p.X.Max += legend
	return p.Save(width, height, path)
}
