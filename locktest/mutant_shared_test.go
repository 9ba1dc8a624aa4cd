package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return m.share(ctx, reqs)
}

func (m *mutant) Downgrade(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return m.downgrade(ctx, reqs)
}

func (m *mutant) Intend(ctx context.Context, waiter lease.Owner, keys []string, d time.Duration) error {
	return m.intent(ctx, waiter, keys, d)
}

// eachShare replaces what is answered to one request to share.
func (m *mutant) eachShare(answer func(q lease.AcquireRequest, right lease.Acquired) lease.Acquired) {
	m.share = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		return each(ctx, reqs, func(q lease.AcquireRequest) lease.Acquired {
			a, err := sole(m.fencing.Share(ctx, []lease.AcquireRequest{q}))
			if err != nil {
				return lease.Acquired{Err: err}
			}
			return answer(q, a)
		})
	}
}

// members replaces the release of a member.
func (m *mutant) members(release func(l lease.Lease) lease.Released) {
	m.eachRelease(func(l lease.Lease) lease.Released {
		if !l.Shared {
			return m.free(l)
		}
		return release(l)
	})
}

// refuseGroups has a taker refused by every reader group, alive or not.
func (m *mutant) refuseGroups() {
	m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
		if row, _ := m.row(q.Key); row.Shared {
			return lease.Acquired{Holder: lease.Holder{Shared: true, Remaining: time.Minute}}
		}
		return m.ask(q)
	})
}

var sharedFlaws = []flaw{
	{"a key that is to be shared is recorded like any other", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			c.Wants, c.Shares = append(c.Wants, c.Shares...), nil
			return true
		})
	}, []string{
		"a call that would share a key does not wait for its readers",
		"a call that would share a key no longer waits for a holder that has downgraded",
	}},
	{"a key that is to be shared is not recorded", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			c.Shares = nil
			return true
		})
	}, []string{
		"a call that would share a key waits for its exclusive holder",
		"a call that would share a key no longer waits for a holder that has downgraded",
	}},
	{"each member has a token of its own", func(m *mutant) {
		m.eachShare(func(_ lease.AcquireRequest, a lease.Acquired) lease.Acquired {
			a.Token++
			return a
		})
	}, []string{"members share one token, and no other owner gets the key"}},
	{"a taker looks for no members", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Shared {
				return m.force(q, 0)
			}
			return m.ask(q)
		})
	}, []string{
		"members share one token, and no other owner gets the key",
		"members and other owners never hold a key together",
	}},
	// What one statement that looks and takes comes to on PostgreSQL: it looks at a snapshot from
	// before it has locked the row.
	{"a taker looks for members before it has locked the row", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			row, _ := m.row(q.Key)
			if row.Held {
				return m.ask(q)
			}
			time.Sleep(2 * time.Millisecond)
			if row, _ := m.row(q.Key); row.Shared {
				return m.force(q, 0)
			}
			return m.ask(q)
		})
	}, []string{"members and other owners never hold a key together"}},
	// A member that joins without the row's lock: its answer comes after the reader group has ended.
	{"a member joins while a taker takes", func(m *mutant) {
		m.eachShare(func(q lease.AcquireRequest, a lease.Acquired) lease.Acquired {
			if row, ok := m.row(q.Key); ok && !a.Granted && row.Token > 1 {
				return lease.Acquired{Granted: true, Token: row.Token - 1}
			}
			return a
		})
	}, []string{"members and other owners never hold a key together"}},
	{"a reader group never ends", func(m *mutant) {
		m.members(func(lease.Lease) lease.Released { return lease.Released{} })
	}, []string{
		"a key is free once its last member has left",
		"members that leave at once leave a key that can be taken",
		"a repeated request to share is answered as the first",
	}},
	{"of two members that leave at once each sees the other, and no taker looks again", func(m *mutant) {
		m.refuseGroups()
		m.members(func(l lease.Lease) lease.Released {
			row, _ := m.row(l.Key)
			time.Sleep(time.Millisecond)
			if row.Members > 1 {
				m.ExpireMember(l.Key, l.Owner)
				return lease.Released{Shared: true}
			}
			return m.free(l)
		})
	}, []string{"members that leave at once leave a key that can be taken"}},
	{"a reader group of the dead holds its key", (*mutant).refuseGroups, []string{
		"a key is free once its last member has expired",
		"a member that has expired is not revived",
	}},
	{"keys are not granted together if a reader group of the dead has one", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			for _, q := range reqs {
				if row, _ := m.row(q.Key); row.Shared {
					return make([]lease.Acquired, len(reqs)), nil
				}
			}
			return m.fencing.AcquireAll(ctx, reqs)
		}
	}, []string{"all keys are granted together though one was shared and abandoned"}},
	{"a renewal revives a member", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			a := m.extend(q)
			if row, _ := m.row(q.Key); q.Shared && row.Token == q.Token {
				a.Outcome = lease.Extended
			}
			return a
		})
	}, []string{"a member renews itself, and no other", "a member that has expired is not revived"}},
	{"a member that leaves ends its reader group", func(m *mutant) {
		m.members(func(l lease.Lease) lease.Released {
			a := m.free(l)
			m.Expire(l.Key)
			return a
		})
	}, []string{
		"a member leaves alone, and once",
		"a key is free once its last member has left",
		"members and other owners never hold a key together",
	}},
	{"a repeated request to share is refused", func(m *mutant) {
		seen := make(map[lease.Owner]bool)
		m.eachShare(func(q lease.AcquireRequest, a lease.Acquired) lease.Acquired {
			if seen[q.Owner] {
				return lease.Acquired{Holder: lease.Holder{Shared: true}}
			}
			seen[q.Owner] = a.Granted
			return a
		})
	}, []string{"a repeated request to share is answered as the first"}},
	{"a downgrade does nothing", func(m *mutant) {
		m.downgrade = func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return []lease.Renewed{{Outcome: lease.Extended}}, nil
		}
	}, []string{
		"a downgrade keeps the token and lets members in",
		"a downgrade of a lease that is gone is lost",
	}},
	{"an intent refuses no member", func(m *mutant) {
		m.intent = func(context.Context, lease.Owner, []string, time.Duration) error { return nil }
	}, []string{"an intent refuses members, lets them in for a while, and ends"}},
	{"an intent that is repeated begins anew", func(m *mutant) {
		m.intent = func(ctx context.Context, waiter lease.Owner, keys []string, d time.Duration) error {
			_ = m.fencing.Intend(ctx, waiter, keys, 0)
			return m.fencing.Intend(ctx, waiter, keys, d)
		}
	}, []string{"an intent refuses members, lets them in for a while, and ends"}},
	{"an intent lets members in when its own time has come", func(m *mutant) {
		m.intent = func(ctx context.Context, waiter lease.Owner, keys []string, d time.Duration) error {
			err := m.fencing.Intend(ctx, waiter, keys, d)
			if len(keys) == 1 && keys[0] == "other" { // it begins, later than the one for k
				m.AgeIntents("other", 2*time.Second)
			}
			return err
		}
	}, []string{"intents for several keys let members in at the same time"}},
	{"a listing shows no members", func(m *mutant) {
		m.inspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			rows, err := m.fencing.Inspect(ctx, f)
			for i := range rows {
				rows[i].Members, rows[i].Shared = 0, false
			}
			return rows, err
		}
	}, []string{"a reader group is listed as one record"}},
	{"a sweep ends no reader group", func(m *mutant) {
		m.sweep = func(context.Context, lease.SweepOptions) (int64, error) { return 0, nil }
	}, []string{"a sweep ends reader groups without members"}},
	{"the fences of members take turns", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := m.fencing.await(ctx, tx, l.Key); err != nil {
			return err
		}
		m.mu.Unlock()
		return m.fencing.Fence(ctx, tx, l)
	}), []string{"fences of two members pass side by side"}},
	{"a member's fence locks nothing", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		defer m.unlock(tx)
		return m.fencing.Fence(context.Background(), tx, l)
	}), []string{"no other owner gets the key while a member's fence is open"}},
	{"a member's fence needs a live member", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		if l.Shared && m.extend(lease.RenewRequest{Lease: l, TTL: ttl}).Outcome != lease.Extended {
			return lease.ErrFenced
		}
		return m.fencing.Fence(context.Background(), tx, l)
	}), []string{"a member's fence passes after its end, and no longer than its reader group lasts"}},
	{"a member is released in a transaction at once", func(m *mutant) {
		m.releaseTx = func(ctx context.Context, tx lease.Runner, l lease.Lease) error {
			err := m.fencing.Fence(ctx, tx, l)
			m.unlock(tx.(*memTx))
			m.free(l)
			return err
		}
	}, []string{"a member that is released in a transaction leaves with its commit"}},
}
