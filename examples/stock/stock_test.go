package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

var line = regexp.MustCompile(`(?m)^(\S.*?) {2,}(\d+) +(\d+) +\d+ +(█+|✗.*)$`)

func TestNothingIsSoldTwice(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), binary, "-db", program.Source(t, k), "-items", "100", "-buyers", "300").CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
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
