package paxosbridge

import (
	"time"

	"github.com/rowlockdb/rowlock/paxosbridge/internal/heat"
)

// decider says which keys move, and when. There is hysteresis between two rates, a time that a key
// must be hot or cool without a break, and a time that a key stays where it has moved to. It reads
// no clock and no store.
type decider struct {
	cfg   *Config
	heat  *heat.Counters
	since map[string]time.Time // since when a key has been hot in the table, or cool in the cluster
}

// decide returns the keys to move out, the hottest first, and those to move back. away has the keys
// in the cluster; returned is when a key last came back.
func (d *decider) decide(
	now time.Time, away map[string]route, returned map[string]time.Time,
) (out, back []string) {
	next := make(map[string]time.Time)
	lasted := func(key string) bool {
		began, ok := d.since[key]
		if !ok {
			began = now
		}
		next[key] = began
		return now.Sub(began) >= d.cfg.Heat.Dwell
	}
	room := d.cfg.Heat.Most
	for key := range away {
		if d.cfg.Pin(key) != Always { // such a key is not there because of its heat
			room--
		}
	}
	for _, k := range d.heat.Above(now, 0) {
		if _, gone := away[k.Key]; gone {
			continue
		}
		switch pin := d.cfg.Pin(k.Key); {
		case pin == Always:
			out = append(out, k.Key)
			continue
		case pin == Never || k.Rate < d.cfg.Heat.Hot:
			continue
		}
		if lasted(k.Key) && now.Sub(returned[k.Key]) >= d.cfg.Heat.MinStay && room > 0 {
			out = append(out, k.Key)
			room--
		}
	}
	for key, r := range away {
		switch pin := d.cfg.Pin(key); {
		case pin == Never:
			back = append(back, key)
		case pin == Always || r.held || r.err != nil || d.heat.Rate(now, key) >= d.cfg.Heat.Cool:
		case lasted(key) && now.Sub(r.since) >= d.cfg.Heat.MinStay:
			back = append(back, key)
		}
	}
	d.since = next
	return out, back
}
