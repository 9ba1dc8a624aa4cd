package main

import (
	"os"

	"gonum.org/v1/plot/plotter"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

var (
	pictureOfKeys      = paper.Chart{Title: "Time of a pair, as a ratio to the smallest table's", File: "keys.svg"}
	pictureOfProcesses = paper.Chart{Title: "Pairs a second of all processes", File: "processes.svg"}
	pictureOfHeld      = paper.Chart{Title: "What renewing takes of one core, in %", File: "held.svg"}
)

// lines are two of a database, each in its color: the second is dashed.
type lines struct {
	curves []paper.Curve
}

// add adds a point to a line of the database, if it can stand on a logarithmic axis.
func (l *lines) add(database, what string, dashed bool, x int, y float64) {
	label := paper.Title(database) + what
	i := 0
	for ; i < len(l.curves) && l.curves[i].Label != label; i++ {
	}
	if i == len(l.curves) {
		look := paper.Ours[database]
		if dashed {
			look.Dashes = paper.Dashed
		}
		l.curves = append(l.curves, paper.Curve{Label: label, Look: look})
	}
	if y > 0 {
		l.curves[i].Points = append(l.curves[i].Points, plotter.XY{X: float64(x), Y: y})
	}
}

// draw draws what there is.
func draw(into string, all *figures) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, one := range []struct {
		chart paper.Chart
		x, y  string
		lines lines
	}{
		{pictureOfKeys, "rows of the table", "ratio", linesOfKeys(all)},
		{pictureOfProcesses, "processes", "pairs/s", linesOfProcesses(all)},
		{pictureOfHeld, "locks held by one process", "%", linesOfHeld(all)},
	} {
		if _, err := paper.DrawCurves(into, one.chart, one.x, one.y, one.lines.curves); err != nil {
			return err
		}
	}
	return nil
}

func linesOfKeys(all *figures) (l lines) {
	for _, database := range order {
		r := all.Keys[database]
		if r == nil || r.Keys == nil {
			continue
		}
		for _, t := range r.Keys.Tables {
			first := r.Keys.Tables[0]
			l.add(database, "", false, t.Rows, rig.Median(ratios(t.Existing[0].Pairs, first.Existing[0].Pairs)))
			l.add(database, ", new keys", true, t.Rows, rig.Median(ratios(t.New[0].Pairs, first.New[0].Pairs)))
		}
	}
	return l
}

func linesOfProcesses(all *figures) (l lines) {
	for _, database := range order {
		r := all.Processes[database]
		if r == nil || r.Processes == nil {
			continue
		}
		for _, c := range r.Processes.Crowds {
			if len(c.Own.Pairs) > 0 && len(c.Shared.Pairs) > 0 {
				l.add(database, ", own keys", false, c.Processes, rig.Median(c.Own.Pairs))
				l.add(database, ", 2 keys of all", true, c.Processes, rig.Median(c.Shared.Pairs))
			}
		}
	}
	return l
}

func linesOfHeld(all *figures) (l lines) {
	for _, database := range order {
		r := all.Held[database]
		if r == nil || r.Held == nil {
			continue
		}
		for _, h := range r.Held.Crowds {
			l.add(database, ", the client", true, h.Locks, 100*h.Client)
			if h.Server > 0 {
				l.add(database, ", the server", false, h.Locks, 100*h.Server)
			}
		}
	}
	return l
}
