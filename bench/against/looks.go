package main

import (
	"gonum.org/v1/plot/vg/draw"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
)

// page is what users read.
type page struct{ paper.Page }

type (
	chart = paper.Chart
	look  = paper.Look
	curve = paper.Curve
	bars  = paper.Bars
)

func chartFiles(asked []answered) (files []string) {
	for _, q := range asked {
		for _, c := range q.charts {
			files = append(files, c.File)
		}
	}
	return files
}

// looks are of all but rowlock.
var looks = map[string]look{
	nameRaw:       {Colour: paper.Black, Dashes: paper.Dashed, Glyph: draw.SquareGlyph{}},
	nameOwn:       {Colour: paper.Grey, Dashes: paper.Dashed, Glyph: draw.PlusGlyph{}},
	nameRedislock: {Colour: paper.Vermilion, Dashes: paper.Dashed, Glyph: draw.TriangleGlyph{}},
	namePipelined: {Colour: paper.Vermilion, Dashes: paper.Dotted, Glyph: draw.CrossGlyph{}},
	nameEtcd:      {Colour: paper.Orange, Dashes: paper.Dashed, Glyph: draw.PyramidGlyph{}},
}
