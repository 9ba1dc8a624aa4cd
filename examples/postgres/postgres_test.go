package main

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// It runs a second time too: on the tables that it has made, and with the key free again.
func TestTheProgramOfTheReadmeRunsOnAnEmptyDatabaseAndAgain(t *testing.T) {
	i := slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == "postgres" })
	url := program.Fresh(t, testdb.Kinds[i])
	for range 2 {
		p := program.New(t, binary)
		p.Env = append(p.Env, "DATABASE_URL="+url)
		out, err := p.Output()
		if want := "what tx writes is refused if the lock was taken over\n"; err != nil || string(out) != want {
			t.Fatalf("it said %q, and %s (%v)", out, p.Stderr.String(), err)
		}
	}
}
