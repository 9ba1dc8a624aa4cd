package figures

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
)

// File is where the budgets are, below the tree's root.
const File = "internal/house/budgets/budgets.txt"

// Budget bounds a figure.
type Budget struct {
	Name string
	// Most is the largest value that passes.
	Most int
	// Goal is what Most is to fall to, and no further.
	Goal int
}

// Budgets are those of a file, with its comments.
type Budgets struct {
	file  string
	lines []string
	list  map[int]Budget // by index in lines
}

// ReadBudgets reads a file whose lines are "name budget goal", or comments.
func ReadBudgets(file string) (*Budgets, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &Budgets{file: file, list: make(map[int]Budget)}
	seen := make(map[string]bool)
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		line := in.Text()
		b.lines = append(b.lines, line)
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		var one Budget
		if _, err := fmt.Sscanf(line, "%s %d %d", &one.Name, &one.Most, &one.Goal); err != nil {
			return nil, fmt.Errorf("%s: %q is not a name, a budget and a goal: %w", file, line, err)
		}
		if seen[one.Name] {
			return nil, fmt.Errorf("%s: %s has two budgets", file, one.Name)
		}
		seen[one.Name] = true
		b.list[len(b.lines)-1] = one
	}
	return b, nil
}

// Of returns the budget of a figure.
func (b *Budgets) Of(name string) (Budget, bool) {
	for _, one := range b.list {
		if one.Name == name {
			return one, true
		}
	}
	return Budget{}, false
}

// Names returns the figures that have budgets.
func (b *Budgets) Names() (names []string) {
	for i := range b.lines {
		if one, ok := b.list[i]; ok {
			names = append(names, one.Name)
		}
	}
	return names
}

// Check returns an error for each figure that is above its budget, or has none. The error names
// what contributes most.
func (b *Budgets) Check(measured []Figure) error {
	var errs []error
	for _, f := range measured {
		switch one, ok := b.Of(f.Name); {
		case !ok:
			errs = append(errs, fmt.Errorf("%s has no budget in %s", f.Name, b.file))
		case f.Value > one.Most:
			errs = append(errs, fmt.Errorf("%s is %d, and its budget is %d: %s\n%s",
				f.Name, f.Value, one.Most, f.Counts, f.largest()))
		}
	}
	return errors.Join(errs...)
}

// largest lists what contributes most, and all if each counts as one: which of them is new, only
// the reader knows.
func (f Figure) largest() string {
	n := 12
	if len(f.Why) == f.Value {
		n = f.Value
	}
	if more := len(f.Why) - n; more > 0 {
		return fmt.Sprintf("\t%s\n\tand %d more", strings.Join(f.Why[:n], "\n\t"), more)
	}
	return "\t" + strings.Join(f.Why, "\n\t")
}

// Lower sets each budget to its figure, if that is lower, but not below its goal. It raises none.
func (b *Budgets) Lower(measured []Figure) (lowered []string) {
	for i := range b.lines {
		one := b.list[i] // or nothing, which is no figure's
		for _, f := range measured {
			if most := max(f.Value, one.Goal); f.Name == one.Name && most < one.Most {
				lowered = append(lowered, fmt.Sprintf("%s from %d to %d", one.Name, one.Most, most))
				one.Most = most
				b.list[i] = one
				b.lines[i] = fmt.Sprintf("%-16s %6d %6d", one.Name, one.Most, one.Goal)
			}
		}
	}
	return lowered
}

// Write writes the file that was read.
func (b *Budgets) Write() error {
	return os.WriteFile(b.file, []byte(strings.Join(b.lines, "\n")+"\n"), 0o644)
}

// Table shows figures beside their budgets, and with why what contributes to them.
func (b *Budgets) Table(measured []Figure, why bool) string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "figure\t%6s\t%6s\t%6s\t\n", "now", "budget", "goal")
	for _, f := range measured {
		one, _ := b.Of(f.Name)
		fmt.Fprintf(out, "%s\t%6d\t%6d\t%6d\t%s\n", f.Name, f.Value, one.Most, one.Goal, f.Counts)
		if why {
			out.Flush()
			fmt.Fprintln(&text, "\t"+strings.Join(f.Why, "\n\t"))
		}
	}
	out.Flush()
	return text.String()
}
