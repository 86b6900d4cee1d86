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
	// apart is how far contenders are from each other, and wide how wide the line of one is, where 1 is between two scenes.
	apart, wide = 0.14, 0.11
	thick       = 3 // points
	samples     = 30
	// legend is the width of the legend.
	legend = 1.4
	// least is what is drawn for less, most for more.
	least, most = 10 * time.Millisecond, 100 * time.Second
)

// draw draws the times of each scene, from the shortest to the longest: those of partitions that moved, and dashed those of others.
func draw(results []result, path string) error {
	p := plot.New()
	p.Title.Text = "How long partitions rest, each line from the shortest to the longest. Dashed: though they stay with their member"
	p.Y.Label.Text = "seconds"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	p.BackgroundColor = color.White
	p.Add(plotter.NewGrid())
	n := len(results) / len(scenes())
	for i, r := range results {
		at := float64(i%len(scenes())) + apart*(float64(i/len(scenes()))-float64(n-1)/2)
		for _, kind := range []struct {
			times  []time.Duration
			dashes []vg.Length
		}{{r.moved, nil}, {r.stayed, []vg.Length{vg.Points(1.5)}}} {
			l, err := plotter.NewLine(curve(kind.times, at))
			if err != nil {
				return err
			}
			l.LineStyle = gonumdraw.LineStyle{Color: plotutil.Color(i / len(scenes())), Width: vg.Points(thick), Dashes: kind.dashes}
			p.Add(l)
			if i%len(scenes()) == 0 && kind.dashes == nil {
				p.Legend.Add(r.name, l)
			}
		}
	}
	p.NominalX(scenes()...)
	p.X.Min, p.X.Max = -0.5, float64(len(scenes()))-0.5+legend
	p.Y.Min, p.Y.Max = least.Seconds(), most.Seconds()
	return p.Save(width, height, path)
}

// curve spreads times from left to right, in their order. Of many it takes some.
func curve(times []time.Duration, at float64) plotter.XYs {
	if len(times) == 0 {
		return nil
	}
	all := make(plotter.XYs, samples)
	for i := range all {
		part := float64(i) / (samples - 1)
		d := times[int(part*float64(len(times)-1)+0.5)]
		all[i] = plotter.XY{X: at + wide*(part-0.5), Y: min(max(d, least), most).Seconds()}
	}
	return all
}
