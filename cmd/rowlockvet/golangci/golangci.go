// Package golangci registers the analyzers of rowlockvet as a plugin of golangci-lint, which builds
// itself anew with it: see docs/vet.md.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/rowlockdb/rowlock/cmd/rowlockvet/vet"
)

func init() {
	register.Plugin("rowlockvet", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return vet.Analyzers(), nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
