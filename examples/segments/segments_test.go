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
// Of too few for the last buyers, at most two items stay, and a later buyer of one takes them.
func TestAllIsSoldOnceAlsoFromSegmentsThatHaveRunDry(t *testing.T) {
	sells(t, false, "200", "-buyers", "150", "-segments", "6")
}

// Each segment has one item, and the three buyers want one, two and three: in whatever order they
// come, the buyer of three cannot be served without a loan. Where segments are fuller, the schedule
// decides: those who came to one that is empty may wait for both locks until the others have sold
// all.
func TestABuyerOfMoreThanAnySegmentHasBorrows(t *testing.T) {
	sells(t, true, "6", "-buyers", "3", "-segments", "7")
}

func sells(t *testing.T, borrows bool, items string, args ...string) {
	t.Helper()
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			db := program.Fresh(t, k)
			p := program.New(t, binary, append(args, "-db", db, "-items", items)...)
			out, err := p.Output()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Stderr.String())
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
			got := sold.FindStringSubmatch(string(out))
			if got == nil || got[1] != items || got[2] != "0" {
				t.Fatalf("want %s sold and none left", items)
			}
			if borrows && got[3] == "0" {
				t.Error("want some loans")
			}
		})
	}
}
