package race

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Result is what was found out about one database.
type Result struct {
	Kind  rig.Kind
	Facts []string
	Rows  []Row
	Sent  []float64 // statements a pair, of Rows; empty if they were not counted
	// Allocated is what a pair allocates, of the first rows; empty if it was not counted.
	Allocated []Allocation
}

// NewResult returns what is known before the first turn.
func NewResult(ctx context.Context, d *rig.Database) (*Result, error) {
	facts, err := d.Facts(ctx)
	return &Result{Kind: d.Kind, Facts: facts}, err
}

// Counted lets the contenders run in, counts their statements by sent, and compares them.
func (r *Result) Counted(ctx context.Context, c Course, contenders []Contender, sent func() int64) error {
	keys := new(Keys)
	for _, one := range contenders {
		before := sent()
		rate, err := Turn(ctx, one, keys, c.Goroutines, c.Turn)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		r.Sent = append(r.Sent, float64(sent()-before)/max(1, rate*c.Turn.Seconds()))
	}
	rows, err := Run(ctx, c, contenders, keys)
	r.Rows = append(r.Rows, rows...)
	return err
}

// report prints the results of turns as long and as many as those of c, with the headings of the
// first table, and the statements if they were counted. The verdicts are those of the targets.
func report(w io.Writer, c Course, headings string, all []*Result) *rig.Verdicts {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d rounds of %s\n", runtime.Version(), runtime.GOMAXPROCS(0), c.Rounds, c.Turn)
	counted, costly := false, false
	for _, r := range all {
		fmt.Fprintf(w, "%s: %s\n", r.Kind.Name, strings.Join(r.Facts, "; "))
		counted, costly = counted || len(r.Sent) > 0, costly || len(r.Allocated) > 0
	}
	v := &rig.Verdicts{}
	rig.Table(w, headings, all, func(w io.Writer, r *Result) { Print(w, r.Kind.Name, r.Rows, v) })
	if costly {
		Costs(w, all)
	}
	if !counted {
		return v
	}
	rig.Table(w, "database\tpair\tgoroutines\tstatements\t", all, func(w io.Writer, r *Result) {
		for i, row := range r.Rows {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t\n", r.Kind.Name, row.Name, row.Goroutines, r.Sent[i])
		}
	})
	return v
}

// Costs prints what noise changes least: time of this process's processors, and allocations.
func Costs(w io.Writer, all []*Result) {
	head := "database\tpair\tgoroutines\tratio of pairs/s [95 %]\tµs CPU\tratio of CPU [95 %]\tobjects\tbytes\t"
	rig.Table(w, head, all, func(w io.Writer, r *Result) {
		for i, row := range r.Rows {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.1f\t%s\t", r.Kind.Name, row.Name, row.Goroutines,
				row.Ratio.Interval(), row.CPU.Median, row.CPURatio.Interval())
			if i < len(r.Allocated) {
				fmt.Fprintf(w, "%.1f\t%.0f", r.Allocated[i].Objects, r.Allocated[i].Bytes)
			} else {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprintln(w, "\t")
		}
	})
}

// Program measures the databases and prints what came of it. With check, the error names targets
// that were missed.
func Program(
	ctx context.Context, kinds []rig.Kind, steps int, c Course, check bool, headings string,
	measure func(context.Context, *rig.Database, *rig.Progress) (*Result, error),
) error {
	all, err := rig.Measure(ctx, kinds, steps, measure)
	if err != nil {
		return err
	}
	v := report(os.Stdout, c, headings, all)
	if check {
		return v.Err()
	}
	return nil
}
