package once

import (
	"sync"
	"time"
)

// doubts has the keys that a transaction of this process may have done, because its COMMIT was not
// answered. A read of the row resolves nothing: the row may be on one server alone, and a failover
// forgets it. So the next call of the key, in this or a later call of Do, has a commit acknowledged
// before it reports the row.
type doubts struct {
	mu    sync.Mutex
	since map[place]time.Time
	// all is until when every key counts as one, because there were more than are remembered.
	// Meanwhile every repeat costs a commit.
	all time.Time
}

// mostDoubts bounds what is remembered: a database that hangs leaves a doubt per call, and the call
// may never be repeated.
const mostDoubts = 10_000

func (d *doubts) has(r Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.since[r.place()]
	return ok || time.Now().Before(d.all)
}

// note remembers a key for as long as its row is kept.
func (d *doubts) note(r Request, keep time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = make(map[place]time.Time)
	}
	if len(d.since) >= mostDoubts {
		d.forget(keep)
		if len(d.since) >= mostDoubts {
			d.all = time.Now().Add(keep)
			return
		}
	}
	d.since[r.place()] = time.Now()
}

// forget removes the keys whose rows have expired.
func (d *doubts) forget(keep time.Duration) {
	for p, at := range d.since {
		if time.Since(at) > keep {
			delete(d.since, p)
		}
	}
}

func (d *doubts) resolve(r Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, r.place())
}
