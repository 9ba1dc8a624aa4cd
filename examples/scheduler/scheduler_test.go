package main

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

func TestTheProgramShowsFailovers(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			db := program.Fresh(t, k)
			p := program.New(t, binary, "-db", db, "-rounds", "2")
			out, err := p.Output()
			for _, want := range []string{
				"killed (SIGKILL); candidate-", "asked to end (SIGINT); candidate-", "graceful stop  min ", "✓ ",
			} {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v; the output lacks %q:\n%s\n%s", err, want, out, p.Stderr.String())
				}
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
		})
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-processes 1": "-processes is 2 to 26",
		"-rounds 0":    "-rounds at least 1",
		"-ttl 1ms":     "-ttl 1ms is less than 500ms",
		"-name x":      "-name wants a -db",
		"extra":        `"extra" is no flag`,
	} {
		p := program.New(t, binary, strings.Split(args, " ")...)
		if _, err := p.Output(); err == nil || !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("%s: %v, said %q, want %q", args, err, p.Stderr.String(), want)
		}
	}
}
