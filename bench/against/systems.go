package main

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// system is a bar: a lock at its best.
type system struct {
	label  string
	colour color.Color
	rate   float64
}

// systems are rowlock on each database, and the others.
func systems(all []*result) (out []system) {
	add := func(e *entry, label string, colour color.Color) {
		if e != nil {
			out = append(out, system{label, colour, rig.SpreadOf(e.rates).Median})
		}
	}
	of := func(name, system string) func(*entry) bool {
		return func(e *entry) bool { return e.name == name && e.system == system }
	}
	for _, r := range all {
		add(best(r.free, named(nameUpdate)), "rowlock\n"+title(r.kind.Name), blue)
	}
	for _, r := range all {
		add(best(r.free, of(nameRedislock, "redis")), "redislock\ndurable", vermilion)
		add(best(r.free, of(nameRedsync, "redis")), "redsync\ndurable", vermilion)
		add(best(r.free, of(nameRedislock, redisDefault)), "redislock\nnot durable", pale)
		add(best(r.free, of(nameEtcd, "etcd")), "etcd\nMutex", orange)
	}
	return out
}

// drawSystems is each lock at its best.
func drawSystems(folder string, all []*result) (chart, error) {
	c := chart{"Lock+unlock pairs per second, at the best number of callers", "systems.svg"}
	p := newPlot(c.title, "", "lock+unlock pairs per second")
	found := systems(all)
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.label
		bar, err := plotter.NewBarChart(plotter.Values{s.rate}, vg.Points(38))
		if err != nil {
			return c, err
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), s.colour, 0
		p.Add(bar)
	}
	if err := figures(p, found); err != nil {
		return c, err
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(found))-0.5
	ticks := evenly(p.Y.Max * 1.05)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, ticks[len(ticks)-1].Value, ticks
	return c, saveWith(filepath.Join(folder, c.file), p.Draw)
}

// figures writes each bar's figure above it.
func figures(p *plot.Plot, found []system) error {
	var at plotter.XYLabels
	for i, s := range found {
		at.XYs = append(at.XYs, plotter.XY{X: float64(i), Y: s.rate})
		at.Labels = append(at.Labels, number(s.rate))
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign, labels.TextStyle[i].Font.Variant = draw.XCenter, "Sans"
	}
	labels.Offset = vg.Point{Y: vg.Points(3)}
	p.Add(labels)
	return nil
}

// evenly are ticks from 0 to beyond most, four to ten of them, a round number apart.
func evenly(most float64) (ticks plot.ConstantTicks) {
	apart := 1.0
	for _, t := range decades(most/10, most/10) {
		apart = t.Value
	}
	for at := 0.0; ; at += apart {
		ticks = append(ticks, plot.Tick{Value: at, Label: grouped(int64(at))})
		if at >= most {
			return ticks
		}
	}
}

func saveWith(file string, paint func(draw.Canvas)) error {
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	paint(draw.Crop(c, 0, -vg.Points(6), vg.Points(2), -vg.Points(6)))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	text := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return os.WriteFile(file, text, 0o644)
}
