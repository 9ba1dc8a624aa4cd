package rowlock

import (
	"context"
	"maps"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// crowd is how many processes wait for a key, and until when that may be believed.
type crowd struct {
	processes int
	until     time.Time
}

const crowdLasts = 2 * time.Second

// count asks how many processes wait for those keys that have changed hands of late. Of a key that stands still nobody needs to know.
func (h *hints) count(ctx context.Context, records []lease.Record) {
	census, ok := h.interest.(lease.Census)
	if !ok {
		return
	}
	keys := h.uncounted(records)
	if len(keys) == 0 {
		return
	}
	n, err := census.Waiting(ctx, keys)
	if err != nil || len(n) != len(keys) {
		return // each polls as often as if it were alone
	}
	until := time.Now().Add(crowdLasts)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, key := range keys {
		h.crowds[key] = crowd{n[i], until}
	}
}

func (h *hints) uncounted(records []lease.Record) (keys []string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.crowds, func(_ string, c crowd) bool { return c.until.Before(now) })
	for _, r := range records {
		if _, known := h.crowds[r.Key]; !known && r.Age < h.c.cfg.PollMax {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// crowd is how many processes wait for key, or 0 if that is not known.
func (h *hints) crowd(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.crowds[key].processes
}
