package main

import (
	"image/color"
	"time"

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
	// apart is how far contenders are from each other, and wide how wide the points of one lie, where 1 is between two scenes.
	apart, wide = 0.14, 0.1
	// legend is the width of the legend.
	legend = 1.4
	// least is what is drawn for less, most for more.
	least, most = 10 * time.Millisecond, 100 * time.Second
)

// draw draws a point for each partition that moved, and a ring for each that rested though it stayed.
func draw(results []result, path string) error {
	p := plot.New()
	p.Title.Text = "How long a partition rests. Filled: it moved. Hollow: it stayed with its member"
	p.Y.Label.Text = "seconds"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	p.BackgroundColor = color.White
	p.Add(plotter.NewGrid())
	n := len(results) / len(scenes())
	for i, r := range results {
		at := float64(i%len(scenes())) + apart*(float64(i/len(scenes()))-float64(n-1)/2)
		for _, kind := range []struct {
			times []time.Duration
			shape gonumdraw.GlyphDrawer
		}{{r.moved, gonumdraw.CircleGlyph{}}, {r.stayed, gonumdraw.RingGlyph{}}} {
			s, err := plotter.NewScatter(points(kind.times, at))
			if err != nil {
				return err
			}
			s.GlyphStyle = gonumdraw.GlyphStyle{Color: plotutil.Color(i / len(scenes())), Shape: kind.shape, Radius: vg.Points(1.8)}
			p.Add(s)
			if i%len(scenes()) == 0 && kind.shape == (gonumdraw.CircleGlyph{}) {
				p.Legend.Add(r.name, s)
			}
		}
	}
	p.NominalX(scenes()...)
	p.X.Min, p.X.Max = -0.5, float64(len(scenes()))-0.5+legend
	p.Y.Min, p.Y.Max = least.Seconds(), most.Seconds()
	return p.Save(width, height, path)
}

// points spreads times from left to right, in their order.
func points(times []time.Duration, at float64) plotter.XYs {
	all := make(plotter.XYs, len(times))
	for i, d := range times {
		all[i] = plotter.XY{X: at + wide*(float64(i)/float64(max(1, len(times)-1))-0.5), Y: min(max(d, least), most).Seconds()}
	}
	return all
}
