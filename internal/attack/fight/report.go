//go:build linux

package fight

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
)

// summary is what -out writes.
type summary struct {
	What       string
	Seed       uint64
	Calls      int
	Grants     int
	FirstAfter float64 // seconds to the first violation that has a time; 0 if there is none
	Violations map[check.Kind]int
	Findings   map[check.Kind]int
}

// examples is how many cases of a kind are printed.
const examples = 5

func (r *run) print(report *check.Report, rows int) error {
	n := Tally(r.events)
	fmt.Printf("attack: %s: %s; %d rows in the journal; %s\n", r.what(), n, rows, &r.slowed)
	fmt.Printf("attack: %s: %s\n", r.what(), n.Passes)
	s := summary{What: r.what(), Seed: r.seed, Calls: n.Calls, Grants: n.Grants}
	s.Findings = r.cases("finding", report.Findings, 1)
	s.Violations = r.cases("VIOLATION", report.Violations, examples)
	for _, c := range report.Violations {
		if c.At > 0 {
			s.FirstAfter = time.Duration(c.At - r.start).Seconds()
			fmt.Printf("attack: the first violation came after %.1f s\n", s.FirstAfter)
			break
		}
	}
	if len(report.Violations) == 0 {
		fmt.Printf("attack: %s: no violation\n", r.what())
	}
	if r.out == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.out, append(text, '\n'), 0o644)
}

// cases prints some of each kind and counts all.
func (r *run) cases(what string, list []check.Case, show int) map[check.Kind]int {
	counts := make(map[check.Kind]int)
	shown := make(map[check.Kind][]check.Case)
	for _, c := range list {
		if counts[c.Kind]++; counts[c.Kind] <= show {
			shown[c.Kind] = append(shown[c.Kind], c)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s: %d × %s\n", what, counts[kind], kind)
		for _, c := range shown[kind] {
			at := ""
			if c.At > 0 {
				at = fmt.Sprintf("%.3f s ", time.Duration(c.At-r.start).Seconds())
			}
			fmt.Printf("    %s%q %s\n", at, c.Key, c.Text)
		}
	}
	return counts
}
