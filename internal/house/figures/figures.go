// Package figures counts what there is to read in the repository, and how much of it can only be
// understood together. internal/house/budgets bounds its figures.
package figures

import (
	"errors"
	"slices"
)

// Module is the path of the root module. Those of the other modules begin with it.
const Module = "github.com/rowlockdb/rowlock"

// Figure is a number that is bounded by a budget.
type Figure struct {
	Name  string
	Value int
	// Counts says what Value counts.
	Counts string
	// Why lists what contributes to Value, the largest contributor first.
	Why []string
}

// OfSource returns the figures of the tree whose root is dir, as far as they need no server.
//
// The product is each public package and each command in cmd, and what these import of this
// repository, except for the suites that test what others write. So it is without bench, examples,
// the attack, the mutants and all that only tests import. Its files are those that a build for
// Linux takes, without tests. Lines include comments and empty lines. Adapters, and modules for
// lock services of others, are no part of the product: these have bounds of their own.
func OfSource(dir string) ([]Figure, error) {
	t, err := load(dir)
	if err != nil {
		return nil, err
	}
	root, product := t.closure([]string{Module}), t.closure(t.entries())
	if len(root) == 0 {
		return nil, errors.New("go list does not find " + Module)
	}
	adapters, err := largestAdapter(dir)
	if err != nil {
		return nil, err
	}
	neighbours, err := neighbourLines(dir)
	if err != nil {
		return nil, err
	}
	return slices.Concat(
		rootFigures(root),
		[]Figure{productLines(product), sqlLines(product)},
		shapes(product),
		[]Figure{
			largestCycle("root.cycle", "the root package", root[len(root)-1:]),
			largestCycle("largest.cycle", "one package of the product", product),
			publicPackages(t.packages),
			adapters,
			neighbours,
		},
	), nil
}
