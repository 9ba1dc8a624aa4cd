//go:build linux

package main

import (
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// crews are what each worker does. Every kind of lock has keys of its own, so that each has its
// share of the time.
var crews = []fight.Crew{
	{Name: "locks", Goroutines: 5, Keys: fight.Keys("locks/", 4), Acts: []fight.Weight{
		{Act: "try", Of: 1}, {Act: "lock", Of: 2}, {Act: "fenced", Of: 4}, {Act: "leave", Of: 2}, {Act: "section", Of: 2}, {Act: "short", Of: 1}, {Act: "hasty", Of: 1},
	}},
	{Name: "hand-over", Goroutines: 4, Keys: []string{"hand-over"}, Acts: []fight.Weight{{Act: "lock", Of: 2}, {Act: "fenced", Of: 1}}},
	// Several callers of DoTx for a key: on PostgreSQL a COMMIT hands it to the next.
	{Name: "sections", Goroutines: 6, Keys: fight.Keys("sections/", 2), Acts: []fight.Weight{{Act: "handed", Of: 8}, {Act: "plain", Of: 1}}},
	{Name: "fair", Goroutines: 3, Keys: fight.Keys("fair/", 2), Fair: true, Acts: []fight.Weight{{Act: "lock", Of: 1}, {Act: "fenced", Of: 2}}},
	{Name: "together", Goroutines: 2, Keys: fight.Keys("together/", 4), Acts: []fight.Weight{{Act: "all", Of: 1}}},
	{Name: "shared", Goroutines: 3, Keys: fight.Keys("shared/", 2), Acts: []fight.Weight{{Act: "shared", Of: 3}, {Act: "fenced", Of: 1}}},
	{Name: "keep", Goroutines: 2, Keys: fight.Keys("keep/", 3), Acts: []fight.Weight{{Act: "keep", Of: 3}, {Act: "brink", Of: 1}}},
	{Name: "slots", Goroutines: 2, Keys: fight.SlotKeys(), Acts: []fight.Weight{{Act: "slots", Of: 1}}},
	{Name: "once", Goroutines: 2, Keys: fight.Keys("once/", 2), Acts: []fight.Weight{{Act: "once", Of: 1}}},
}

func newPlan(seed uint64, length time.Duration) fight.Plan {
	return fight.Plan{
		Seed: seed, TTL: ttl, Rough: true,
		Phases: []fight.Phase{{Name: "chaos", To: int64(length), Crews: crews}},
	}
}

// planKeys are those that have a counter.
func planKeys() (list []string) {
	for _, c := range crews {
		list = append(list, c.Keys...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
