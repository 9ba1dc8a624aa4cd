package paper

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Bars are those of one color, one for each group of a chart. What is not known has no bar.
type Bars struct {
	Label  string
	Colour color.Color
	Values []float64
}

const room = 82 // points for the bars of a group

// DrawBars draws groups of bars, each with its figure above it. Nothing is drawn without bars.
func DrawBars(folder string, c Chart, y string, groups []string, all []Bars) ([]Chart, error) {
	all = slices.DeleteFunc(all, func(b Bars) bool {
		return !slices.ContainsFunc(b.Values, func(v float64) bool { return v > 0 })
	})
	if len(all) == 0 {
		return nil, nil
	}
	p := newPlot(c.Title, "", y)
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
	return []Chart{c}, save(p, folder, c.File)
}

func (b *Bars) add(p *plot.Plot, width, offset vg.Length) error {
	heights := make(plotter.Values, len(b.Values))
	var figures plotter.XYLabels
	for i, v := range b.Values {
		if v > 0 {
			heights[i] = v
			figures.XYs = append(figures.XYs, plotter.XY{X: float64(i), Y: v})
			figures.Labels = append(figures.Labels, Number(v))
		}
	}
	chart, err := plotter.NewBarChart(heights, width)
	if err != nil {
		return err
	}
	chart.Color, chart.LineStyle.Width, chart.Offset = b.Colour, 0, offset
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
	p.Legend.Add(b.Label, chart)
	return nil
}

// evenly are ticks from 0 to beyond most, four to ten of them, a round number apart.
func evenly(most float64) (ticks plot.ConstantTicks) {
	apart := 1.0
	for _, t := range decades(most/10, most/10) {
		apart = t.Value
	}
	for at := 0.0; ; at += apart {
		label := Grouped(int64(at + 0.5))
		if apart < 1 {
			label = fmt.Sprintf("%.3g", at)
		}
		ticks = append(ticks, plot.Tick{Value: at, Label: label})
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
