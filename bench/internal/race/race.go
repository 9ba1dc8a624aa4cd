// Package race compares ways to do the same thing: contenders take turns in short rounds, and a
// ratio is always of two neighbours in time, so that what else the machine does then slows both.
package race

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Contender is one way to lock and unlock a key, or to do what it does with one.
type Contender struct {
	Name   string
	Series byte // of its keys: no two contenders meet
	Fresh  bool // a new key each time
	Among  int  // if it is not 0: so many keys, which all goroutines take in turn; a power of ten
	Target float64
	Pair   func(ctx context.Context, key string) error
}

// Row is what a contender reached with so many goroutines.
type Row struct {
	Name       string
	Goroutines int
	Rate       rig.Spread // pairs per second
	Ratio      rig.Spread // of the first contender's rate in the same round
	// CPU is how many µs of this process's processors a pair takes, and CPURatio that of the first
	// contender's in the same round. What else the machine does changes them less than rates.
	CPU, CPURatio rig.Spread
	Target        float64
}

// Course is how long a race is.
type Course struct {
	Title      string
	Goroutines int
	Rounds     int
	Turn       time.Duration
	Progress   *rig.Progress
}

// Run gives every contender a turn in each round, the order turning with the rounds. The first is
// the floor.
func Run(ctx context.Context, c Course, contenders []Contender, keys *Keys) ([]Row, error) {
	rates, costs := make([][]float64, len(contenders)), make([][]float64, len(contenders))
	for round := range c.Rounds {
		for i := range contenders {
			at := (i + round) % len(contenders)
			c.Progress.Say(c.Title, fmt.Sprintf("%s, %d", contenders[at].Name, c.Goroutines))
			before := rig.CPU()
			rate, err := Turn(ctx, contenders[at], keys, c.Goroutines, c.Turn)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[at].Name, err)
			}
			used := float64((rig.CPU() - before).Microseconds())
			rates[at] = append(rates[at], rate)
			costs[at] = append(costs[at], used/max(1, rate*c.Turn.Seconds()))
			c.Progress.Step()
		}
	}
	return rows(contenders, rates, costs, c.Goroutines), nil
}

func rows(contenders []Contender, rates, costs [][]float64, goroutines int) (out []Row) {
	for i, c := range contenders {
		out = append(out, Row{
			Name: c.Name, Goroutines: goroutines, Target: c.Target,
			Rate: rig.SpreadOf(rates[i]), Ratio: ratios(rates[i], rates[0]),
			CPU: rig.SpreadOf(costs[i]), CPURatio: ratios(costs[i], costs[0]),
		})
	}
	return out
}

func ratios(of, to []float64) rig.Spread {
	all := make([]float64, len(of))
	for round := range all {
		all[round] = of[round] / to[round]
	}
	return rig.SpreadOf(all)
}

// Turn lets a contender run for so long and returns its pairs per second.
func Turn(ctx context.Context, c Contender, k *Keys, goroutines int, d time.Duration) (float64, error) {
	return rig.Turn(ctx, goroutines, d, func(ctx context.Context, worker, n int) error {
		return c.Pair(ctx, k.Next(c, worker, n))
	})
}

// Print writes a line for each row: the contender, goroutines, pairs per second, ratio, target,
// verdict.
func Print(w io.Writer, database string, all []Row, v *rig.Verdicts) {
	for _, row := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t", database, row.Name, row.Goroutines, row.Rate.Median)
		switch {
		case row.Target == 0 && row.Ratio.Least == 1 && row.Ratio.Most == 1:
			fmt.Fprint(w, "1\t\t\n")
		case row.Target == 0:
			fmt.Fprintf(w, "%s\t\t\n", row.Ratio)
		default:
			fmt.Fprintf(w, "%s\t≥ %.2f\t%s\n", row.Ratio, row.Target, v.Mark(row.Ratio.Median >= row.Target))
		}
	}
}
