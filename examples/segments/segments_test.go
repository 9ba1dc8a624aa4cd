package main

import (
	"regexp"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

var sold = regexp.MustCompile(`(?m)^(\d+) items sold, (\d+) left, (\d+) loans`)

// More is wanted than there is: all is sold, also what lies in other segments than a buyer came to.
// Of too few for the last buyers, at most two items stay.
func TestAllIsSoldOnceAlsoFromSegmentsThatHaveRunDry(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			db := program.Fresh(t, k)
			p := program.New(t, binary, "-db", db, "-items", "200", "-buyers", "150", "-segments", "6")
			out, err := p.Output()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Stderr.String())
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
			got := sold.FindStringSubmatch(string(out))
			if got == nil || got[1] != "200" || got[2] != "0" || got[3] == "0" {
				t.Errorf("want 200 sold, none left, and some loans")
			}
		})
	}
}
