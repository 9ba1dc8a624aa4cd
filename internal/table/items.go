package table

import (
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// only returns the error of a batch of one as the call's own, because callers of a single operation
// check that one.
func only[T any](items []T, err func(T) error) error {
	if len(items) == 1 {
		return err(items[0])
	}
	return nil
}

// splitShared answers the leases of members by another way than the others, and in any case.
func splitShared[Q, A any](
	items []Q, shared func(Q) bool, failed func(error) A, own, members func([]Q) ([]A, error),
) ([]A, error) {
	var at [2][]int
	for i, q := range items {
		n := flag(shared(q))
		at[n] = append(at[n], i)
	}
	out := make([]A, len(items))
	for n, f := range [2]func([]Q) ([]A, error){own, members} {
		if len(at[n]) == 0 {
			continue
		}
		part, err := f(adapter.Pick(items, at[n]))
		if len(items) == 1 {
			return part, err
		}
		for k, a := range adapter.Each("ask", part, err, len(at[n]), failed) {
			out[at[n][k]] = a
		}
	}
	return out, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func keysOf(reqs []lease.AcquireRequest) []string {
	keys := make([]string, len(reqs))
	for i := range reqs {
		keys[i] = reqs[i].Key
	}
	return keys
}

func byKeys(records []lease.Record) map[string]lease.Record {
	rows := make(map[string]lease.Record, len(records))
	for _, r := range records {
		rows[r.Key] = r
	}
	return rows
}
