package paxosbridge

import "time"

// decider says which keys move, and when: hysteresis between two rates, a time that a key must be hot or cool without a break, and a time
// that it stays where it has come to. It has no clock and asks nobody.
type decider struct {
	cfg   *Config
	heat  *heat
	since map[string]time.Time // since when a key has been hot in the table, or cool in the cluster
}

// sight is what is known of a key that is in the cluster.
type sight struct {
	// since is when it came there, as far as this process knows.
	since time.Time
	// busy says that somebody had it when it was last looked at, perhaps another process, whose heat is not known here.
	busy bool
}

// decide returns the keys to move out, the hottest first, and those to move back. away has the keys in the cluster; stayed is when a key
// last came back.
func (d *decider) decide(now time.Time, away map[string]sight, stayed map[string]time.Time) (out, back []string) {
	next := make(map[string]time.Time)
	ripe := func(key string) bool {
		began, ok := d.since[key]
		if !ok {
			began = now
		}
		next[key] = began
		return now.Sub(began) >= d.cfg.Dwell
	}
	room := d.cfg.Most
	for key := range away {
		if d.cfg.Pin(key) != Always { // it is not there because of its heat
			room--
		}
	}
	for _, w := range d.heat.above(now, 0) {
		if _, gone := away[w.key]; gone {
			continue
		}
		switch pin := d.cfg.Pin(w.key); {
		case pin == Always:
			out = append(out, w.key)
			continue
		case pin == Never || w.rate < d.cfg.Hot:
			continue
		}
		if ripe(w.key) && now.Sub(stayed[w.key]) >= d.cfg.MinStay && room > 0 {
			out = append(out, w.key)
			room--
		}
	}
	for key, s := range away {
		switch pin := d.cfg.Pin(key); {
		case pin == Never:
			back = append(back, key)
		case pin == Always || s.busy || d.heat.rate(now, key) >= d.cfg.Cool:
		case ripe(key) && now.Sub(s.since) >= d.cfg.MinStay:
			back = append(back, key)
		}
	}
	d.since = next
	return out, back
}
