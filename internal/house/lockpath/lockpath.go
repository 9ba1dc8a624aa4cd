// Package lockpath counts the code that a lock on PostgreSQL runs through: it runs a program with
// counters in it, and leaves out what other goroutines happened to do meanwhile.
package lockpath

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// A busy machine adds the one or other function to a measurement.
const tries = 3

// Within measures until no figure is above its budget, three times at most, and returns the
// smallest values.
func Within(budgets *figures.Budgets, dir, dsn string) (least []figures.Figure, err error) {
	for range tries {
		measured, err := Measure(dir, dsn)
		if err != nil {
			return nil, err
		}
		least = merge(least, measured, func(a, b int) bool { return b < a })
		if budgets.Check(least) == nil {
			break
		}
	}
	return least, nil
}

// Largest measures three times and returns the largest values: a budget from a lucky run would be
// missed by the next one.
func Largest(dir, dsn string) (largest []figures.Figure, err error) {
	for range tries {
		measured, err := Measure(dir, dsn)
		if err != nil {
			return nil, err
		}
		largest = merge(largest, measured, func(a, b int) bool { return b > a })
	}
	return largest, nil
}

// merge takes each figure from b whose value is better than in a.
func merge(a, b []figures.Figure, better func(a, b int) bool) []figures.Figure {
	if a == nil {
		return b
	}
	merged := slices.Clone(a)
	for i := range merged {
		if better(a[i].Value, b[i].Value) {
			merged[i] = b[i]
		}
	}
	return merged
}

// Measure returns the figures of the tree whose root is dir, on the PostgreSQL server of a data
// source name. Its user must be able to create a schema.
func Measure(dir, dsn string) (measured []figures.Figure, err error) {
	folder, err := os.MkdirTemp("", "lockpath")
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(folder)) }()
	at := place{dir, folder}
	probe := filepath.Join(folder, "probe")
	err = at.run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+figures.Module+"/...",
		"-o", probe, "./internal/house/lockpath/probe")
	if err != nil {
		return nil, err
	}
	if err := at.run(probe, dsn, folder); err != nil {
		return nil, err
	}
	alone, err := at.entered("alone")
	if err != nil {
		return nil, err
	}
	passed, err := at.entered("passed")
	if err != nil {
		return nil, err
	}
	stack, err := os.ReadFile(filepath.Join(folder, "stack"))
	if err != nil {
		return nil, err
	}
	return append(ofPath(alone), frames(string(stack)), figures.Figure{
		Name: "pass.functions", Value: len(passed), Why: perPackage(passed),
		Counts: "functions that Lock and Unlock of one client enter, and those of another that waits",
	}), nil
}

// place is where a measurement is made: the root of a tree, and a folder for what is written.
type place struct{ dir, folder string }

func (p place) run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+p.folder) // for the counters at the probe's end
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out)
	}
	return nil
}

func ofPath(entered []function) []figures.Figure {
	slices.SortFunc(entered, func(a, b function) int { return cmp.Compare(b.lines(), a.lines()) })
	longest, packages := 0, make(map[string]bool)
	var why []string
	for _, f := range entered {
		longest = max(longest, f.lines())
		packages[f.pkg] = true
		why = append(why, fmt.Sprintf("%5d %s: %s", f.lines(), f.pkg, f.name))
	}
	per := perPackage(entered)
	return []figures.Figure{
		{
			Name: "path.functions", Value: len(entered), Why: per,
			Counts: "functions that Lock and Unlock of a free key enter",
		},
		{
			Name: "path.packages", Value: len(packages), Why: per,
			Counts: "packages with such functions",
		},
		{Name: "path.longest", Value: longest, Why: why, Counts: "lines of the longest of them"},
	}
}

func frames(stack string) figures.Figure {
	calls := strings.Fields(stack)
	return figures.Figure{
		Name: "path.frames", Value: len(calls), Why: calls,
		Counts: "rowlock's calls on the stack when Lock writes to the socket",
	}
}
