//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
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
			database: database, fault: "reply", seed: 7, struck: 6, totals: fight.Totals{Grants: 5},
			report:   &check.Report{Violations: []check.Case{{Kind: check.Falls}}},
			recovery: 1500 * time.Millisecond, overlaps: []time.Duration{40 * time.Millisecond, 2 * time.Millisecond},
			blows: map[string]int{"fence: unsent": 1, "fence: half sent": 1, "fence: reply lost": 1, database + "'s own: late": 3},
		})
	}
	page := filepath.Join(t.TempDir(), "report.md")
	if err := s.data().write(page); err != nil {
		t.Fatal(err)
	}
	text := read(t, page)
	for _, want := range []string{
		"rowlock 0123456789ab,", `make chaos FOR=1s ROUND=8s SEED=7 TIMES=25 ON="postgres mysql" FAULTS="all"`,
		"- timeouts on mysql: **not tested**: it is for postgres\n", "- failover-lossy on mysql: **not run to the end**: 1\n",
		"| mysql | 3 | 2 | 0, 0 | 1s | 1, 2 |\n",
		"| reply | all | 2 | 12 | 10 | 0 | 2 × token falls |\n",
		"2 rounds, 10 locks granted, 0 fenced writes committed. Violations: 2 × token falls.",
		"| mysql | 1.5s (reply) | none | 2; 40ms (reply) | 0 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	text = read(t, strings.TrimSuffix(page, ".md")+".json")
	for _, want := range []string{
		`"next_grant_median":"1s","next_grant_longest":"1s","writes_of_holders_before_committed":1,"writes_of_holders_before_refused":2`,
		`{"statement":"fence","cut_before_after_late":{"mysql":[2,1,0],"postgres":[2,1,0]}}`,
		`{"statement":"mysql's own","cut_before_after_late":{"mysql":[0,0,3]}}`,
		`"overlaps":{"number":2,"median":"40ms","worst":"40ms"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the data lack %s:\n%s", want, text)
		}
	}
	text = read(t, page)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '|' && utf8.RuneCountInString(line) > 100 {
			t.Errorf("more than 100 columns: %s", line)
		}
	}
}

var update = flag.Bool("update", false, "write docs/reliability.md from its data")

// The page says what its data say, in the words of today.
func TestThePublishedReportIsThatOfItsData(t *testing.T) {
	const page = "../../../docs/reliability.md"
	text := read(t, "../../../docs/reliability.json")
	var d data
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := d.write(page); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := d.json(); err != nil || string(again) != read(t, "../../../docs/reliability.json") {
		t.Errorf("docs/reliability.json is not as make chaos writes it (%v)", err)
	}
	if read(t, page) != d.markdown() {
		t.Error("docs/reliability.md is not what its data say: go test ./internal/attack/chaos -run Published -update")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
