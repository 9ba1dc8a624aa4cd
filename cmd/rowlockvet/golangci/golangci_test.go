package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	_ "github.com/rowlockdb/rowlock/cmd/rowlockvet/golangci"
	"github.com/rowlockdb/rowlock/cmd/rowlockvet/vet"
)

func TestGolangciLintGetsTheAnalyzers(t *testing.T) {
	made, err := register.GetPlugin("rowlockvet")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := made(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plugin.BuildAnalyzers()
	if err != nil || len(got) != len(vet.Analyzers()) {
		t.Errorf("golangci-lint gets %d analyzers of %d: %v", len(got), len(vet.Analyzers()), err)
	}
}
