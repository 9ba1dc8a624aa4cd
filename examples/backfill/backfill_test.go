package main

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// The program itself looks at every row at the end, and its exit status says whether one is wrong.
// Batches are small: with larger ones all rows were done before it had looked once for whom to kill.
func TestNoRowIsChangedTwiceOrLeftOutHoweverOftenAWorkerIsKilled(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			db := program.Fresh(t, k)
			p := program.New(t, binary, "-db", db, "-rows", "20000", "-batch", "10", "-shards", "12", "-kills", "5")
			out, err := p.Output()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Stderr.String())
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
			if !strings.Contains(string(out), "✓ 20000 rows, ") || strings.Contains(string(out), ", 0 workers killed, n") {
				t.Error("want all rows, and workers that were killed")
			}
		})
	}
}

func TestAnInterruptedBackfillLeavesNoTables(t *testing.T) {
	db := program.Fresh(t, testdb.Kinds[0])
	p := program.New(t, binary, "-db", db, "-rows", "400000", "-batch", "10")
	p.InterruptAfter(t, "rows done")
	p.LeavesNothing(t)
	program.LeavesNoTables(t, db)
}
