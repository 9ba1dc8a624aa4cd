package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// counted is one contributor to a figure.
type counted struct {
	what string
	n    int
}

// most lists contributors, the largest first.
func most(list []counted) (lines []string) {
	slices.SortFunc(list, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.what, b.what))
	})
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%5d %s", c.n, c.what))
	}
	return lines
}

func (f Figure) ofLines(list []counted) Figure {
	for _, c := range list {
		f.Value += c.n
	}
	f.Why = most(list)
	return f
}

func rootFigures(root []*Package) []Figure {
	var each []counted
	for _, p := range root {
		each = append(each, counted{p.short(), p.lines})
	}
	of := "the root package and what it imports of this repository"
	return []Figure{
		Figure{Name: "root.lines", Counts: "lines of Go in " + of}.ofLines(each),
		{Name: "root.packages", Value: len(root), Counts: "packages: " + of, Why: most(each)},
	}
}

func productLines(product []*Package) Figure {
	var each []counted
	for _, p := range product {
		n := p.lines
		for _, lines := range p.sql {
			n += lines
		}
		each = append(each, counted{p.short(), n})
	}
	return Figure{Name: "product.lines", Counts: "lines of Go and SQL in the product"}.ofLines(each)
}

func sqlLines(product []*Package) Figure {
	var each []counted
	for _, p := range product {
		if strings.HasPrefix(p.short(), "dialect/") {
			for name, n := range p.sql {
				each = append(each, counted{p.short() + "/" + name, n})
			}
		}
	}
	return Figure{
		Name: "sql.lines", Counts: "lines of SQL in dialect/*, the statements of the three dialects",
	}.ofLines(each)
}

func publicPackages(list []*Package) Figure {
	f := Figure{Name: "public.packages", Counts: "packages that users can import"}
	for _, p := range list {
		if IsPublic(p.short()) {
			f.Value++
			f.Why = append(f.Why, p.short())
		}
	}
	slices.Sort(f.Why)
	return f
}
