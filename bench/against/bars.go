package main

import (
	"bytes"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// bars are those of one color, one for each group of a chart. What is not known has no bar.
type bars struct {
	label  string
	colour color.Color
	values []float64
}

const room = 82 // points for the bars of a group

// drawBars draws groups of bars, each with its figure above it. Nothing is drawn without bars.
func drawBars(folder string, c chart, y string, groups []string, all []bars) ([]chart, error) {
	all = slices.DeleteFunc(all, func(b bars) bool {
		return !slices.ContainsFunc(b.values, func(v float64) bool { return v > 0 })
	})
	if len(all) == 0 {
		return nil, nil
	}
	p := newPlot(c.title, "", y)
	p.NominalX(groups...)
	width := vg.Points(room / float64(len(all)))
	for i, b := range all {
		offset := width * vg.Length(float64(i)-float64(len(all)-1)/2)
		if err := b.add(p, width, offset); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	ticks := evenly(p.Y.Max * 1.05)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, ticks[len(ticks)-1].Value, ticks
	return []chart{c}, save(p, folder, c.file)
}

func (b *bars) add(p *plot.Plot, width, offset vg.Length) error {
	heights := make(plotter.Values, len(b.values))
	var figures plotter.XYLabels
	for i, v := range b.values {
		if v > 0 {
			heights[i] = v
			figures.XYs = append(figures.XYs, plotter.XY{X: float64(i), Y: v})
			figures.Labels = append(figures.Labels, number(v))
		}
	}
	chart, err := plotter.NewBarChart(heights, width)
	if err != nil {
		return err
	}
	chart.Color, chart.LineStyle.Width, chart.Offset = b.colour, 0, offset
	labels, err := plotter.NewLabels(figures)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		style := &labels.TextStyle[i]
		style.XAlign, style.Font.Variant, style.Font.Size = draw.XCenter, "Sans", vg.Points(7)
	}
	labels.Offset = vg.Point{X: offset, Y: vg.Points(3)}
	p.Add(chart, labels)
	p.Legend.Add(b.label, chart)
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
