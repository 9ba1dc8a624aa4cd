// Command rowlock runs commands under locks, and shows who holds which lock: see `rowlock help` and
// docs/operations/command-line.md.
package main

import (
	"os"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/supervise"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == supervise.Argument {
		os.Exit(supervise.Warden(os.Args[2:]))
	}
	os.Exit(cli.Main(os.Args[1:]))
}
