package once

import (
	"sync"
	"time"
)

// doubts are keys of which a transaction of this process may have been committed: its COMMIT was not answered. That the row is there
// resolves nothing, because a row can be read that is on one server alone, and that a failover forgets. So the next call of the key,
// in this call of Do or a later one, has a commit acknowledged before it tells of the row.
type doubts struct {
	mu    sync.Mutex
	since map[place]time.Time
	// all is until when every key counts as one, because there were more than are remembered. It costs every repeat a commit.
	all time.Time
}

// mostDoubts bounds what is remembered: a database that hangs leaves a doubt for each call, and nobody may ever repeat it.
const mostDoubts = 10_000

func (d *doubts) has(r Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.since[place{r.Tenant, r.Key}]
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
	d.since[place{r.Tenant, r.Key}] = time.Now()
}

// forget removes those whose rows have expired.
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
	delete(d.since, place{r.Tenant, r.Key})
}
