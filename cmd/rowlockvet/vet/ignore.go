package vet

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const ignoring = "//rowlockvet:ignore"

// report reports d, unless a comment with a reason stands at its line or above it.
func report(pass *analysis.Pass, d analysis.Diagnostic) {
	if !ignored(pass, d.Pos) {
		pass.Report(d)
	}
}

func ignored(pass *analysis.Pass, pos token.Pos) bool {
	file, line := fileOf(pass, pos), pass.Fset.Position(pos).Line
	if file == nil {
		return false
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			reason, found := strings.CutPrefix(c.Text, ignoring+" ")
			at := pass.Fset.Position(c.Pos()).Line
			if found && strings.TrimSpace(reason) != "" && (at == line || at == line-1) {
				return true
			}
		}
	}
	return false
}

func fileOf(pass *analysis.Pass, pos token.Pos) *ast.File {
	for _, file := range pass.Files {
		if file.FileStart <= pos && pos < file.FileEnd {
			return file
		}
	}
	return nil
}

func inTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}
