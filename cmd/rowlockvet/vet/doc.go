// Package vet has the analyzers of rowlockvet, for programs that run analyzers of their choice, as
// golangci-lint with a plugin does.
//
// They know rowlock by its import path and its types, and import none of it. They look at one
// function at a time: what a function passes on is the business of the function that gets it. So
// they stay silent about much that is wrong, and are seldom wrong about what they report.
//
// A comment on the line, or on the line above it, suppresses what is reported there. It needs a
// reason:
//
//	//rowlockvet:ignore the lease is left to expire
package vet

import "golang.org/x/tools/go/analysis"

// Analyzers returns all of them.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{Dropped, Unlock, Fence, OuterContext, Token, Loop}
}
