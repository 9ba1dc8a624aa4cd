// Package memcluster is a paxosbridge.Cluster in memory, for tests: what a cluster must do, in few
// lines, and the reference for other clusters.
package memcluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Cluster keeps records in memory. Make one with [New].
type Cluster struct {
	mu        sync.Mutex
	down      error
	records   map[string]*record
	listeners map[*listener]struct{}
	claimed   string
}

type listener struct{ heard func(string) }

type record struct {
	epoch   int64
	sealed  bool
	counter int64
	owner   lease.Owner
	note    string
	granted time.Time
	expires time.Time
}

var (
	_ paxosbridge.Cluster = (*Cluster)(nil)
	_ paxosbridge.Claimer = (*Cluster)(nil)
)

// New returns a cluster without records.
func New() *Cluster {
	return &Cluster{records: make(map[string]*record), listeners: make(map[*listener]struct{})}
}

// Fail makes every call return err and change nothing, until it is called with nil.
func (c *Cluster) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// ClaimFor remembers the first owner.
func (c *Cluster) ClaimFor(_ context.Context, owner string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil && c.claimed == "" {
		c.claimed = owner
	}
	return c.claimed, c.down
}

// Expire ends the lease on key, if there is one.
func (c *Cluster) Expire(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[key]; r != nil {
		r.expires = time.Time{}
	}
}

func (r *record) held(now time.Time) bool {
	return r != nil && !r.owner.IsZero() && now.Before(r.expires)
}

func (r *record) token() lease.Token { return lease.EpochStart(r.epoch) | lease.Token(r.counter) }

func (r *record) names(l lease.Lease) bool {
	return r != nil && !l.Owner.IsZero() && r.owner == l.Owner &&
		(l.Token == 0 || l.Token == r.token())
}

func (r *record) grant(now time.Time, q lease.AcquireRequest) lease.Acquired {
	r.counter++
	r.owner, r.note, r.granted, r.expires = q.Owner, q.Note, now, now.Add(q.TTL)
	return lease.Acquired{Granted: true, Token: r.token()}
}

// each answers a batch at one instant.
func each[Q, A any](
	ctx context.Context, c *Cluster, items []Q, answer func(time.Time, Q) A,
) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	out := make([]A, len(items))
	for i, q := range items {
		out[i] = answer(time.Now(), q)
	}
	return out, nil
}

// Acquire grants free keys in the epoch that a request names. See [lease.Store].
func (c *Cluster) Acquire(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	return each(ctx, c, reqs, func(now time.Time, q lease.AcquireRequest) lease.Acquired {
		if err := q.Check(); err != nil {
			return lease.Acquired{Err: err}
		}
		r := c.records[q.Key]
		switch {
		case r == nil && q.Epoch == 0:
			r = new(record)
			c.records[q.Key] = r
		case r == nil:
			return lease.Acquired{
				Err: &paxosbridge.RecordError{
					Record: paxosbridge.Record{Key: q.Key}, Asked: q.Epoch,
				},
			}
		case r.sealed || q.Epoch != 0 && q.Epoch != r.epoch:
			return lease.Acquired{
				Err: &paxosbridge.RecordError{Record: r.seen(q.Key), Asked: q.Epoch},
			}
		}
		switch {
		case !r.held(now):
			return r.grant(now, q)
		case r.owner == q.Owner:
			return lease.Acquired{Granted: true, Token: r.token()}
		}
		return lease.Acquired{Holder: lease.Holder{Note: r.note, Remaining: r.expires.Sub(now)}}
	})
}

func (r *record) seen(key string) paxosbridge.Record {
	return paxosbridge.Record{Key: key, Epoch: r.epoch, Sealed: r.sealed}
}

// Settle returns at once, because no call outlasts its caller.
func (c *Cluster) Settle(context.Context) {}

// Renew extends leases. See [lease.Store].
func (c *Cluster) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(ctx, c, reqs, func(now time.Time, q lease.RenewRequest) lease.Renewed {
		r := c.records[q.Key]
		if q.Token == 0 || !r.names(q.Lease) || !r.held(now) {
			return lease.Renewed{Outcome: lease.Lost}
		}
		r.expires = now.Add(q.TTL)
		return lease.Renewed{Outcome: lease.Extended}
	})
}

// Release releases leases. See [lease.Store].
func (c *Cluster) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	out, err := each(ctx, c, leases, func(now time.Time, l lease.Lease) lease.Released {
		r := c.records[l.Key]
		if !r.names(l) {
			return lease.Released{Gone: true}
		}
		r.owner, r.note, r.expires = lease.Owner{}, "", now
		return lease.Released{}
	})
	for i := range out {
		c.notify(leases[i].Key)
	}
	return out, err
}

// HandOver grants leases to their next owners. See [lease.Passer].
func (c *Cluster) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return each(ctx, c, items, func(now time.Time, h lease.HandOver) lease.Acquired {
		if err := h.Check(); err != nil {
			return lease.Acquired{Err: err}
		}
		r := c.records[h.From.Key]
		switch {
		case r.held(now) && r.owner == h.To.Owner:
			return lease.Acquired{Granted: true, Token: r.token()}
		case !r.names(h.From):
			return lease.Acquired{}
		}
		return r.grant(now, h.To)
	})
}

// Inspect lists records that were ever granted. See [lease.Store].
func (c *Cluster) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	keys := slices.Clone(f.Keys)
	c.mu.Lock()
	if len(keys) == 0 {
		keys = slices.Collect(maps.Keys(c.records))
	}
	c.mu.Unlock()
	slices.Sort(keys)
	found, err := each(ctx, c, slices.Compact(keys), func(now time.Time, key string) lease.Record {
		r := c.records[key]
		if r == nil || f.Held && !r.held(now) || !strings.HasPrefix(key, f.Prefix) ||
			f.After != "" && key <= f.After {
			return lease.Record{}
		}
		return lease.Record{
			Lease:     lease.Lease{Key: key, Owner: r.owner, Token: r.token()},
			Held:      r.held(now),
			Note:      r.note,
			Remaining: r.expires.Sub(now),
			Age:       now.Sub(r.granted),
		}
	})
	found = slices.DeleteFunc(found, func(r lease.Record) bool { return r.Key == "" })
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	return found[:min(limit, len(found))], err
}

// Open opens a newer epoch.
func (c *Cluster) Open(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, key, epoch, false)
}

// Supersede seals a newer epoch.
func (c *Cluster) Supersede(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, key, epoch, true)
}

func (c *Cluster) raise(ctx context.Context, key string, epoch int64, sealed bool) error {
	_, err := each(ctx, c, []string{key}, func(_ time.Time, key string) struct{} {
		if r := c.records[key]; r == nil || r.epoch < epoch {
			c.records[key] = &record{epoch: epoch, sealed: sealed}
		}
		return struct{}{}
	})
	c.notify(key)
	return err
}

// Seal closes the holder's epoch.
func (c *Cluster) Seal(ctx context.Context, l lease.Lease) (bool, error) {
	done, err := each(ctx, c, []lease.Lease{l}, func(_ time.Time, l lease.Lease) bool {
		r := c.records[l.Key]
		if l.Token == 0 || !r.names(l) || r.sealed {
			return false
		}
		r.sealed, r.owner, r.note = true, lease.Owner{}, ""
		return true
	})
	return err == nil && done[0], err
}

// Records lists the records.
func (c *Cluster) Records(
	ctx context.Context, after string, limit int,
) ([]paxosbridge.Record, error) {
	out, err := each(
		ctx, c, []string{after},
		func(_ time.Time, after string) (out []paxosbridge.Record) {
			for _, key := range slices.Sorted(maps.Keys(c.records)) {
				if key > after && len(out) < limit {
					out = append(out, c.records[key].seen(key))
				}
			}
			return out
		},
	)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// Probe returns the error given to Fail.
func (c *Cluster) Probe(ctx context.Context) error {
	_, err := each(ctx, c, []int{0}, func(time.Time, int) int { return 0 })
	return err
}

// Listen hears of releases. See [lease.Notifier].
func (c *Cluster) Listen(ctx context.Context, heard func(string)) error {
	one := &listener{heard}
	c.mu.Lock()
	c.listeners[one] = struct{}{}
	c.mu.Unlock()
	heard("")
	<-ctx.Done()
	c.mu.Lock()
	delete(c.listeners, one)
	c.mu.Unlock()
	return ctx.Err()
}

// Announce does nothing, because Listen hears of releases itself.
func (c *Cluster) Announce(context.Context, []string) error { return nil }

func (c *Cluster) notify(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.listeners {
		one.heard(key)
	}
}
