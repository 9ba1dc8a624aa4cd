package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/rowlockdb/rowlock/cmd/rowlockvet/vet"
)

// together runs all analyzers, so that each looks at the programs of the others too.
var together = &analysis.Analyzer{
	Name: "rowlockvet",
	Doc:  "run all analyzers of package vet",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, a := range vet.Analyzers() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

// Each program has functions that are right, in right.go, and others that are wrong, with what is
// said of them.
func TestWrongProgramsAreFoundAndRightOnesPass(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), together, "programs/...")
}

// What a fix writes is in fixes.go.golden.
func TestFixes(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), together, "fixes")
}

func TestTheAnalyzersAreValid(t *testing.T) {
	if err := analysis.Validate(vet.Analyzers()); err != nil {
		t.Error(err)
	}
}
