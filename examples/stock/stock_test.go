package main

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

var line = regexp.MustCompile(`(?m)^(\S.*?) {2,}(\d+) +(\d+) +\d+ +(█+|✗.*)$`)

func TestNothingIsSoldTwice(t *testing.T) {
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			db := program.Fresh(t, k)
			p := program.New(t, binary, "-db", db, "-items", "100", "-buyers", "300")
			out, err := p.Output()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Stderr.String())
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
			lines := line.FindAllStringSubmatch(string(out), -1)
			if len(lines) != 7 {
				t.Fatalf("%d ways are shown, want 7", len(lines))
			}
			for _, l := range lines[1:] {
				if l[2] != "100" || l[3] != "0" || !strings.HasPrefix(l[4], "█") {
					t.Errorf("%s: sold %s, left %s, drawn %q", l[1], l[2], l[3], l[4])
				}
			}
			if !strings.Contains(lines[0][4], "oversold") {
				t.Errorf("without a lock: %q; has the sale no rush?", lines[0][4])
			}
		})
	}
}

// However many buyers are in the shop when it closes, it says one line, and takes everything away.
func TestInterrupt(t *testing.T) {
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			db := program.Fresh(t, k)
			p := program.New(t, binary, "-db", db, "-items", "1000000", "-buyers", "1000000")
			p.InterruptAfter(t, "buyers\n\n")
			if p.ProcessState.ExitCode() != 130 || p.Stderr.String() != "stock: interrupted\n" {
				t.Errorf("exit status %d, said %.300q", p.ProcessState.ExitCode(), p.Stderr.String())
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
		})
	}
}

// A buyer who finds one shelf empty goes on to the next.
func TestABuyerGoesFromShelfToShelf(t *testing.T) {
	var asked []int64
	w := way{shelves: 3, buy: func(_ context.Context, shelf int64, _ buyer) error {
		asked = append(asked, shelf)
		return errSoldOut
	}}
	empty := make([]atomic.Bool, w.shelves)
	for range 2 { // the second asks nowhere
		if err := new(shop).serve(t.Context(), w, buyer{}, empty); err != nil || len(asked) != 3 {
			t.Errorf("asked at %v: %v", asked, err)
		}
	}
}

func TestABrokenPromiseIsAnError(t *testing.T) {
	good := result{way: way{name: "w"}, items: 10, sold: 7, left: 3}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []result{{way: good.way, items: 10, sold: 8, left: 3}, {way: good.way, items: 10, sold: 6, left: 3}} {
		if bad.check() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}
