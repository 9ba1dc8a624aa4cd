package main

import (
	"cmp"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// chart is a picture that was drawn.
type chart struct{ title, file string }

func chartFiles(charts []chart) (files []string) {
	for _, c := range charts {
		files = append(files, c.file)
	}
	return files
}

// drawAll draws what there are figures for.
func drawAll(folder string, s settings, all []*result) (charts []chart, err error) {
	if !s.parts[onFree] {
		return nil, nil
	}
	c, err := drawSystems(folder, all)
	if err != nil {
		return nil, err
	}
	charts = append(charts, c)
	for _, r := range all {
		for _, draw := range []func(string, settings, *result) (chart, error){drawThroughput, drawLatency} {
			if c, err = draw(folder, s, r); err != nil {
				return nil, fmt.Errorf("%s: %w", r.kind.Name, err)
			}
			charts = append(charts, c)
		}
	}
	return charts, nil
}

// look is how a contender is drawn, the same in each chart. The colours are told apart by colour-blind people too (Okabe and Ito).
type look struct {
	colour color.RGBA
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

var (
	black     = color.RGBA{0, 0, 0, 255}
	orange    = color.RGBA{230, 159, 0, 255}
	sky       = color.RGBA{86, 180, 233, 255}
	green     = color.RGBA{0, 158, 115, 255}
	blue      = color.RGBA{0, 114, 178, 255}
	vermilion = color.RGBA{213, 94, 0, 255}
	purple    = color.RGBA{204, 121, 167, 255}
	grey      = color.RGBA{120, 120, 120, 255}
	pale      = color.RGBA{240, 170, 120, 255}

	dashed = []vg.Length{vg.Points(5), vg.Points(3)}
	dotted = []vg.Length{vg.Points(1.5), vg.Points(2.5)}
)

var looks = map[string]look{
	nameUpdate:    {blue, nil, draw.CircleGlyph{}},
	nameInsert:    {sky, dashed, draw.SquareGlyph{}},
	nameSwap:      {green, dashed, draw.TriangleGlyph{}},
	nameForUpdate: {purple, dashed, draw.PyramidGlyph{}},
	nameRaw:       {black, nil, draw.SquareGlyph{}},
	nameNaive:     {grey, dotted, draw.CrossGlyph{}},
	nameOwn:       {grey, dashed, draw.PlusGlyph{}},
	nameRedislock: {vermilion, nil, draw.TriangleGlyph{}},
	nameRedsync:   {vermilion, dotted, draw.CrossGlyph{}},
	nameEtcd:      {orange, nil, draw.PyramidGlyph{}},
}

func lookOf(c *contender) look {
	l := looks[c.name]
	if c.system == redisDefault {
		l.colour, l.dashes = pale, dashed
	}
	return l
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

// curve adds a contender's line.
func curve(p *plot.Plot, c *contender, label string, points plotter.XYs) error {
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	l := lookOf(c)
	line.Color, line.Width, line.Dashes = l.colour, vg.Points(1.8), l.dashes
	if c.name == nameUpdate {
		line.Width = vg.Points(3)
	}
	marks.Color, marks.Radius, marks.Shape = l.colour, vg.Points(3.2), l.glyph
	p.Add(line, marks)
	p.Legend.Add(label, line, marks)
	return nil
}

// contendersOf are the contenders that have reached something, in their order, with their entries.
func contendersOf(entries []*entry) (all [][]*entry) {
	at := make(map[*contender]int)
	for _, e := range entries {
		if e.err != nil || len(e.rates) == 0 {
			continue
		}
		i, ok := at[e.contender]
		if !ok {
			i = len(all)
			at[e.contender] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], e)
	}
	return all
}

// drawThroughput is pairs per second by callers.
func drawThroughput(folder string, _ settings, r *result) (chart, error) {
	c := chart{"Throughput by callers, " + title(r.kind.Name), "throughput-" + r.kind.Name + ".svg"}
	p := newPlot(c.title, "callers", "pairs per second")
	for _, entries := range contendersOf(r.free) {
		if entries[0].name == nameOneShot {
			continue // a point, no line
		}
		var points plotter.XYs
		for _, e := range entries {
			points = append(points, plotter.XY{X: float64(e.goroutines), Y: rig.SpreadOf(e.rates).Median})
		}
		if err := curve(p, entries[0].contender, entries[0].label(r.kind.Name), points); err != nil {
			return c, err
		}
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, levelTicks(r.free)
	logarithmic(&p.Y)
	return c, save(p, folder, c.file)
}

// levelTicks are the numbers of goroutines that there were.
func levelTicks(entries []*entry) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, e := range entries {
		at := float64(e.goroutines)
		if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == at }) {
			ticks = append(ticks, plot.Tick{Value: at, Label: grouped(int64(at))})
		}
	}
	slices.SortFunc(ticks, func(a, b plot.Tick) int { return cmp.Compare(a.Value, b.Value) })
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
	return grouped(int64(at + 0.5))
}

var percentiles = []float64{50, 90, 99, 99.9}

// drawLatency is the percentiles with as many goroutines as most of them ran with.
func drawLatency(folder string, s settings, r *result) (chart, error) {
	goroutines := s.level(mostHands)
	c := chart{"", "latency-" + r.kind.Name + ".svg"}
	c.title = fmt.Sprintf("Time of a lock+unlock pair, %d callers, %s", goroutines, title(r.kind.Name))
	p := newPlot(c.title, "percentile", "milliseconds")
	for _, entries := range contendersOf(r.free) {
		e := find(entries, func(e *entry) bool { return e.goroutines == goroutines })
		if e == nil {
			continue
		}
		var points plotter.XYs
		for i, percentile := range percentiles {
			points = append(points, plotter.XY{X: float64(i), Y: ms(e.latency, percentile)})
		}
		if err := curve(p, e.contender, e.label(r.kind.Name), points); err != nil {
			return c, err
		}
	}
	p.X.Tick.Marker = percentileTicks()
	p.X.Min, p.X.Max = -0.15, float64(len(percentiles))-0.85
	logarithmic(&p.Y)
	return c, save(p, folder, c.file)
}

func percentileTicks() (ticks plot.ConstantTicks) {
	for i, percentile := range percentiles {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: fmt.Sprintf("p%v", percentile)})
	}
	return ticks
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
