//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

func TestAReport(t *testing.T) {
	s := &summary{
		settings: settings{length: time.Second, round: 8 * time.Second, seed: 7, times: 25, workers: 3, on: "postgres mysql", faults: "all"},
		revision: "0123456789ab", versions: []string{"postgres 15", "mysql 9"},
	}
	s.able("mysql", []*fault{{name: "timeouts", on: []string{"postgres"}}})
	s.line("mysql", "failover-lossy").Failed = 1
	s.line("mysql", "failover-lossy").Failovers = []standing{
		{Lost: true, Next: 30 * time.Millisecond, Refused: 2}, {Next: time.Second, Kept: 1}, {Lost: true, Next: -1},
	}
	for _, database := range []string{"postgres", "mysql"} {
		s.add(&found{
			database: database, fault: "reply", seed: 7, struck: 6, report: new(check.Report), totals: fight.Totals{Grants: 5},
			blows: map[string]int{"fence: unsent": 1, "fence: half sent": 1, "fence: reply lost": 1, database + "'s own: late": 3},
		})
	}
	text := s.markdown()
	for _, want := range []string{
		"rowlock 0123456789ab\n", `make chaos FOR=1s ROUND=8s SEED=7 TIMES=25 ON="postgres mysql" FAULTS="all"`,
		"| mysql | timeouts | **not tested**: it is for postgres |", "| mysql | failover-lossy | **not run to the end: 1** |",
		"| mysql | failover-lossy | 3 | 2 | 0 | 0 | 1s, 1s | 1, 2 |\n",
		"| postgres | reply | 1 | 6 | 5 | 0 | 0 | none |",
		"| fence | 2, 1, 0 | 2, 1, 0 |\n| mysql's own |  | 0, 0, 3 |\n| postgres's own | 0, 0, 3 |  |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '|' && utf8.RuneCountInString(line) > 100 {
			t.Errorf("more than 100 columns: %s", line)
		}
	}
}

func TestThePublishedReportHasTheHeadOfToday(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), reportHead) {
		t.Error("docs/reliability.md does not begin with reportHead: copy it, or run make chaos")
	}
}

// A seed decides the faults of a mixed round, whatever rounds came before.
func TestMixedIsDecidedByTheSeed(t *testing.T) {
	all := faults()
	names := func(seed uint64) (list []string) {
		r := &round{server: &server{engine: &postgres}, plan: newPlan(seed, 8*time.Second)}
		for _, f := range r.some(all[:len(all)-1], r.plan.Stream("strike")) {
			list = append(list, f.name)
		}
		return list
	}
	first := strings.Join(names(1), " ")
	for seed := uint64(2); seed < 20; seed++ {
		if n := len(names(seed)); n < 2 || n > 4 {
			t.Errorf("%d faults, want two to four", n)
		}
	}
	if again := strings.Join(names(1), " "); again != first {
		t.Errorf("%q, and before %q", again, first)
	}
}
