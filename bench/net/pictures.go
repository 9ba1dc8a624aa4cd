package main

import (
	"cmp"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
)

// folder is that of the pictures, beside the page.
const folder = "costs"

var (
	pictureOfSections = paper.Chart{Title: "A section that writes a row, in round trips' time", File: "section.svg"}
	pictureOfWaiting  = paper.Chart{Title: "A hand-over between two processes, in round trips' time", File: "waiting.svg"}
	pictureOfNetwork  = paper.Chart{Title: "Round trips of a call, counted on the wire", File: "network.svg"}
)

// of finds a way, or nil.
func (r *result) of(title, name string) *way {
	for _, g := range r.groups {
		if i := slices.IndexFunc(g.ways, func(w *way) bool { return w.name == name }); g.title == title && i >= 0 {
			return g.ways[i]
		}
	}
	return nil
}

// from are the results from one distance.
func from(all []*result, delay time.Duration) []*result {
	return slices.DeleteFunc(slices.Clone(all), func(r *result) bool { return r.delay != delay })
}

// draw draws what is found from the last distance. A time is divided by that of a round trip in the
// same round: so what else the machine does divides out of it, and the more so the longer a round
// trip is.
func draw(s settings, all []*result) error {
	into := filepath.Join(s.out, folder)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	away := from(all, s.delays[len(s.delays)-1])
	inTrips := func(r *result, w *way) float64 { return w.ratio(r.groups[0].ways[0]).Median }
	if err := bars(into, pictureOfSections, "round trips' time", away, inTrips, onSection, []named{
		{section.Raw, paper.Grey, ""},
		{wayOwn, paper.Black, ""},
		{wayRedis, paper.Vermilion, ""},
		{ours + section.Unlock, paper.Blue, ""},
		{ours + section.UnlockTx, paper.Sky, ""},
		{ours + section.DoTx, paper.Green, ""},
	}); err != nil {
		return err
	}
	if err := bars(into, pictureOfWaiting, "round trips' time", away, inTrips, onHandOver, []named{
		{holdOwn, paper.Black, ""}, {holdRedis, paper.Vermilion, ""}, {holdRowlock, paper.Blue, ""},
	}); err != nil {
		return err
	}
	trips := func(_ *result, w *way) float64 { return rig.Median(w.trips) }
	return bars(into, pictureOfNetwork, "round trips", away, trips, "", []named{
		{wayPair, paper.Blue, ""},
		{wayFive, paper.Sky, "rowlock: LockAll of 5, Unlock"},
		{section.Raw, paper.Grey, "section, SELECT FOR UPDATE"},
		{ours + section.Unlock, paper.Orange, "section, rowlock: Unlock"},
		{ours + section.DoTx, paper.Green, "section, rowlock: DoTx"},
		{ours + section.OfPgx, paper.Vermilion, "section, rowlock: DoTx of pgx"},
		{wayOnce, paper.Purple, ""},
	})
}

// named is a way, its color, and its label if that is not its name.
type named struct {
	name   string
	colour color.Color
	label  string
}

// bars draws the ways of one group, or of all if it is empty, with the databases beside one another.
func bars(
	into string, c paper.Chart, y string, all []*result, value func(*result, *way) float64, title string, ways []named,
) error {
	var groups []string
	drawn := make([]paper.Bars, len(ways))
	for i, w := range ways {
		drawn[i] = paper.Bars{Label: cmp.Or(w.label, w.name), Colour: w.colour}
	}
	for _, r := range all {
		groups = append(groups, paper.Title(r.kind.Name))
		for i, w := range ways {
			drawn[i].Values = append(drawn[i].Values, r.value(title, w.name, value))
		}
	}
	_, err := paper.DrawBars(into, c, y, groups, drawn)
	return err
}

// value is that of a way, or 0 if there is none.
func (r *result) value(title, name string, of func(*result, *way) float64) float64 {
	for _, g := range r.groups {
		if w := r.of(g.title, name); w != nil && (title == "" || title == g.title) {
			return of(r, w)
		}
	}
	return 0
}
