// Command rowlockvet finds mistakes in the use of rowlock before the program runs: see
// docs/vet.md. It is for go vet, and runs by itself too:
//
//	go vet -vettool=$(which rowlockvet) ./...
//	rowlockvet ./...
package main

import (
	"encoding/json"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/rowlockdb/rowlock/cmd/rowlockvet/vet"
)

func main() {
	if len(os.Args) != 2 || !skipped(os.Args[1]) {
		multichecker.Main(vet.Analyzers()...)
	}
}

// skipped reports whether file tells to look at a dependency of what go vet was asked for. That is
// for facts, which these analyzers have none of, and would cost the type check of every dependency.
func skipped(file string) bool {
	if !strings.HasSuffix(file, ".cfg") {
		return false
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var cfg struct {
		VetxOnly   bool
		VetxOutput string
	}
	if json.Unmarshal(text, &cfg) != nil || !cfg.VetxOnly {
		return false
	}
	return os.WriteFile(cfg.VetxOutput, nil, 0o666) == nil
}
