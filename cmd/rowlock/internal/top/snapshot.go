// Package top is the screen of `rowlock top`.
package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// Snapshot is what the database said at one moment.
type Snapshot struct {
	Held []lease.Record
	// More says that there are more held keys than were read.
	More bool
	// Waited has the keys that are waited for.
	Waited []shown.Waited
}

// order is what the rows are sorted by.
type order int

const (
	byKey order = iota
	byAge
	byLeft
	byWaiters
	orders
)

func (o order) String() string { return [...]string{"key", "age", "left", "waiters"}[o] }

// entry is one row of the screen.
type entry struct {
	lease.Record
	waiters int
}

func entries(s Snapshot, by order) []entry {
	waiters := make(map[string]int)
	for _, w := range s.Waited {
		waiters[w.Key] = w.Queued + w.Processes
	}
	all := make([]entry, len(s.Held))
	for i, r := range s.Held {
		all[i] = entry{r, waiters[r.Key]}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		switch by {
		case byAge:
			return cmp.Compare(b.Age, a.Age)
		case byLeft:
			return cmp.Compare(a.Remaining, b.Remaining)
		case byWaiters:
			return cmp.Compare(b.waiters, a.waiters)
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return all
}

var columns = []listing.Column{
	{Name: "KEY", Least: 24},
	{Name: "HOLDER", Least: 16, Rank: 1},
	{Name: "NOTE", Least: 10, Rank: 5},
	{Name: "AGE", Right: true, Rank: 3},
	{Name: "LEFT", Right: true, Rank: 2},
	{Name: "", Rank: 6},
	{Name: "WAITERS", Right: true, Rank: 4},
}

// row shows an entry. full is the longest time to expiry that was seen of the lease.
func row(e entry, full time.Duration) []string {
	identity, note := lease.SplitNote(e.Note)
	waiters := ""
	if e.waiters > 0 {
		waiters = listing.Count(e.waiters)
	}
	if e.Err != nil {
		return []string{keytext.Show(e.Key), "(corrupt)", "", "-", "-", "", waiters}
	}
	return []string{
		keytext.Show(e.Key), listing.Plain(identity), listing.Plain(note), listing.Span(e.Age),
		listing.Span(e.Remaining), bar(e.Remaining, full), waiters,
	}
}

const cells = 8

// bar drains as a lease does.
func bar(left, full time.Duration) string {
	n := cells
	if full > 0 {
		n = int((left*cells + full - 1) / full)
	}
	n = max(0, min(cells, n))
	return strings.Repeat("█", n) + strings.Repeat("░", cells-n)
}
