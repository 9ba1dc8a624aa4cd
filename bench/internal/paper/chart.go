package paper

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is a picture that was drawn.
type Chart struct{ Title, File string }

// Look is how something is drawn, the same in each chart. The colours are told apart by colour-blind people too (Okabe and Ito).
type Look struct {
	Colour color.RGBA
	Dashes []vg.Length
	Glyph  draw.GlyphDrawer
}

// The colours and dashes of charts.
var (
	Black     = color.RGBA{0, 0, 0, 255}
	Orange    = color.RGBA{230, 159, 0, 255}
	Sky       = color.RGBA{86, 180, 233, 255}
	Green     = color.RGBA{0, 158, 115, 255}
	Blue      = color.RGBA{0, 114, 178, 255}
	Vermilion = color.RGBA{213, 94, 0, 255}
	Purple    = color.RGBA{204, 121, 167, 255}
	Grey      = color.RGBA{120, 120, 120, 255}

	Dashed = []vg.Length{vg.Points(5), vg.Points(3)}
	Dotted = []vg.Length{vg.Points(1.5), vg.Points(2.5)}
)

// Ours are rowlock's, by database.
var Ours = map[string]Look{
	"sqlite":   {Green, nil, draw.CircleGlyph{}},
	"postgres": {Blue, nil, draw.CircleGlyph{}},
	"mariadb":  {Sky, nil, draw.CircleGlyph{}},
	"mysql":    {Purple, nil, draw.CircleGlyph{}},
}

// newPlot has a short label on the left: on a logarithmic axis gonum takes it to stand higher than it does, and leaves it room there.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	sans(p)
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(14), vg.Points(8)
	p.Legend.Padding, p.Legend.TextStyle.Font.Size = vg.Points(3), vg.Points(10)
	p.BackgroundColor = color.White // or it cannot be read on a dark page
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{220}
	p.Add(grid)
	return p
}

// sans has all letters without serifs, as the pages around are.
func sans(p *plot.Plot) {
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
}

// Curve is a line of a chart.
type Curve struct {
	Label  string
	Look   Look
	Wide   bool
	Points plotter.XYs
}

// add draws the line, unless it has no points.
func (c *Curve) add(p *plot.Plot) error {
	if len(c.Points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(c.Points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = c.Look.Colour, vg.Points(1.8), c.Look.Dashes
	if c.Wide {
		line.Width = vg.Points(3)
	}
	marks.Color, marks.Radius, marks.Shape = c.Look.Colour, vg.Points(3.2), c.Look.Glyph
	p.Add(line, marks)
	p.Legend.Add(c.Label, line, marks)
	return nil
}

// DrawCurves draws lines over numbers that double, or about that. Nothing is drawn without lines.
func DrawCurves(folder string, c Chart, x, y string, curves []Curve) ([]Chart, error) {
	p := newPlot(c.Title, x, y)
	var at []float64
	for _, one := range curves {
		if err := one.add(p); err != nil {
			return nil, err
		}
		for _, point := range one.Points {
			at = append(at, point.X)
		}
	}
	if at == nil {
		return nil, nil
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticksAt(at)
	logarithmic(&p.Y)
	return []Chart{c}, save(p, folder, c.File)
}

// ticksAt are those of an axis that has only these numbers.
func ticksAt(numbers []float64) (ticks plot.ConstantTicks) {
	slices.Sort(numbers)
	for _, at := range slices.Compact(numbers) {
		ticks = append(ticks, plot.Tick{Value: at, Label: Grouped(int64(at))})
	}
	return ticks
}

// logarithmic begins and ends the axis at a tick. What lay beyond it would take its room from the plot.
func logarithmic(a *plot.Axis) {
	ticks := decades(a.Min, a.Max)
	a.Scale, a.Tick.Marker = plot.LogScale{}, ticks
	a.Min, a.Max = ticks[0].Value, ticks[len(ticks)-1].Value
}

// decades are 1, 2 and 5 in each power of ten, from the last that is not above least to the first that is not below most.
func decades(least, most float64) (ticks plot.ConstantTicks) {
	for power := 1e-3; ; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			at := plot.Tick{Value: step * power, Label: tickLabel(step * power)}
			if at.Value <= least {
				ticks = nil
			}
			ticks = append(ticks, at)
			if at.Value >= most && len(ticks) > 1 {
				return ticks
			}
		}
	}
}

func tickLabel(at float64) string {
	if at < 1 {
		return fmt.Sprintf("%.3g", at)
	}
	return Grouped(int64(at + 0.5))
}

const width, height, legendWidth = 22 * vg.Centimeter, 11 * vg.Centimeter, 6.5 * vg.Centimeter

// save draws the legend beside the plot, where it covers no line.
func save(p *plot.Plot, folder, file string) error {
	return saveWith(filepath.Join(folder, file), func(c draw.Canvas) {
		legend := p.Legend
		p.Legend = plot.NewLegend()
		legend.Top, legend.Left = true, true
		legend.YOffs = -vg.Points(40)
		p.Draw(draw.Crop(c, 0, -legendWidth, 0, 0))
		legend.Draw(draw.Crop(c, width-legendWidth+vg.Points(8), 0, 0, 0))
	})
}
