package vet

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const ignoring = "//rowlockvet:ignore"

// report reports message of at, unless a comment with a reason stands at its line or above it.
func report(pass *analysis.Pass, at ast.Node, message string, fixes ...analysis.SuggestedFix) {
	if !ignored(pass, at.Pos()) {
		pass.Report(analysis.Diagnostic{
			Pos: at.Pos(), End: at.End(), Message: message, SuggestedFixes: fixes,
		})
	}
}

func ignored(pass *analysis.Pass, pos token.Pos) bool {
	here := pass.Fset.Position(pos)
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				reason, found := strings.CutPrefix(c.Text, ignoring+" ")
				at := pass.Fset.Position(c.Pos())
				if found && strings.TrimSpace(reason) != "" && at.Filename == here.Filename &&
					(at.Line == here.Line || at.Line == here.Line-1) {
					return true
				}
			}
		}
	}
	return false
}

func inTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}
