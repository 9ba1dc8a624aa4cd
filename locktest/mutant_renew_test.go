package locktest

import (
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// lostBut is a store that makes something of the renewals that a right store calls lost.
func lostBut(revive func(m *mutant, row lease.Record, q lease.RenewRequest) bool) func(m *mutant) {
	return func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			a := m.extend(q)
			if row, _ := m.row(q.Key); a.Outcome == lease.Lost && revive(m, row, q) {
				a.Outcome = lease.Extended
			}
			return a
		})
	}
}

// regain makes q's owner the holder again, with its old token.
func (m *mutant) regain(q lease.RenewRequest) bool {
	return m.force(lease.AcquireRequest{Key: q.Key, Owner: q.Owner, TTL: q.TTL}, q.Token).Granted
}

var renewFlaws = []flaw{
	{"a renewal only says that it extends", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			if row, _ := m.row(q.Key); row.Held && row.Lease == q.Lease {
				return lease.Renewed{Outcome: lease.Extended, Clock: time.Hour}
			}
			return lease.Renewed{}
		})
	}, []string{"a renewal extends the lease", "the store's clock is told with the answers"}},
	// An UPDATE with greatest().
	{"a renewal shortens no lease", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			row, _ := m.row(q.Key)
			q.TTL = max(q.TTL, row.Remaining)
			return m.extend(q)
		})
	}, []string{"a renewal can shorten the lease"}},
	// MySQL counts changed rows, not matched ones.
	{"a renewal in the same millisecond as the last is lost", func(m *mutant) {
		var mu sync.Mutex
		var last time.Time
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now().Truncate(time.Millisecond); now.Equal(last) {
				return lease.Renewed{}
			} else {
				last = now
			}
			return m.extend(q)
		})
	}, []string{"renewals in quick succession are all extended"}},
	// An UPDATE without a look at the expiry.
	{"a renewal revives an expired lease", lostBut(func(m *mutant, row lease.Record, q lease.RenewRequest) bool {
		return row.Lease == q.Lease && m.regain(q)
	}), []string{
		"a late renewal does not revive an expired lease",
		"a lease ends by itself, and not before its time",
		"an owner whose lease has expired gets a new one with a higher token",
		"concurrent calls could have happened one after another",
	}[:1]},
	{"a renewal says that an expired lease is extended", lostBut(func(_ *mutant, row lease.Record, q lease.RenewRequest) bool {
		return row.Lease == q.Lease
	}), []string{
		"a late renewal does not revive an expired lease",
		"concurrent calls could have happened one after another",
	}},
	{"a renewal revives a released lease", lostBut(func(m *mutant, row lease.Record, q lease.RenewRequest) bool {
		return row.Owner.IsZero() && row.Token == q.Token && !q.Owner.IsZero() && q.Token > 0 && m.regain(q)
	}), []string{"a late renewal does not revive a released lease"}},
	// openbao#2097.
	{"a renewal creates the row", lostBut(func(m *mutant, row lease.Record, q lease.RenewRequest) bool {
		return row.Key == "" && m.regain(q)
	}), []string{"a renewal never creates a row"}},
	// openbao#2100.
	{"a renewal takes the key back", lostBut(func(m *mutant, row lease.Record, q lease.RenewRequest) bool {
		return row.Held && row.Token > q.Token && !q.Owner.IsZero() && m.regain(q)
	}), []string{"a renewal never takes the key from a successor"}},
	{"a renewal ignores the token", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			row, _ := m.row(q.Key)
			q.Token = row.Token
			return m.extend(q)
		})
	}, []string{"a renewal with another token is lost"}},
	{"a renewal with another token extends the lease, and is told that it is lost", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			a := m.extend(q)
			if row, _ := m.row(q.Key); a.Outcome == lease.Lost && row.Owner == q.Owner {
				q.Token = row.Token
				m.extend(q)
			}
			return a
		})
	}, []string{"a renewal with another token is lost"}},
	{"a renewal ignores the owner", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			row, _ := m.row(q.Key)
			q.Owner = row.Owner
			return m.extend(q)
		})
	}, []string{"a renewal by another owner is lost", "two owners of one process exclude each other"}},
}

var timeFlaws = []flaw{
	{"a renewal counts from the old end", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			row, _ := m.row(q.Key)
			q.TTL += row.Remaining
			return m.extend(q)
		})
	}, []string{"a renewal counts from now, not from the old end"}},
	// goose.
	{"a lease lasts whole seconds", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { q.TTL = q.TTL.Truncate(time.Second); return m.ask(q) })
	}, []string{"a lease keeps the fraction of its second"}},
	{"a renewed lease lasts whole seconds", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			q.TTL = (q.TTL + time.Second - 1).Truncate(time.Second)
			return m.extend(q)
		})
	}, []string{"a lease keeps the fraction of its second"}},
	{"a lease never ends", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { q.TTL *= 1000; return m.ask(q) })
	}, []string{"a lease ends by itself, and not before its time"}},
	{"a lease ends too soon", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { q.TTL /= 2; return m.ask(q) })
	}, []string{"a lease ends by itself, and not before its time"}},
	{"the clock stands still", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed { a := m.extend(q); a.Clock = time.Hour; return a })
	}, []string{"the store's clock is told with the answers"}},
	{"the clock runs in other units", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed { a := m.extend(q); a.Clock *= 1000; return a })
	}, []string{"the store's clock is told with the answers"}},
}

var keyFlaws = []flaw{
	{"keys are folded to lower case", otherKeys(strings.ToLower), keyCatchers[:1]},
	{"spaces at the end of a key are cut off", otherKeys(func(k string) string { return trim(k, " ") }), keyCatchers[:1]},
	{"NULs at the end of a key are cut off", otherKeys(func(k string) string { return trim(k, "\x00") }), keyCatchers[:1]},
	{"the last byte of a long key is cut off", otherKeys(func(k string) string { return cut(k, 254) }), keyCatchers[:1]},
	{"keys are made valid UTF-8", otherKeys(func(k string) string { return strings.ToValidUTF8(k, "\ufffd") }), keyCatchers},
	{"an empty key is like any other", otherKeys(func(k string) string {
		if k == "" {
			return "(empty)"
		}
		return k
	}), []string{"an empty key and one of 256 bytes are refused", "an invalid key in a batch takes no valid one with it"}},
	{
		"a key of 256 bytes is cut", otherKeys(func(k string) string { return cut(k, lease.MaxKey) }),
		[]string{"an empty key and one of 256 bytes are refused"},
	},
	{"rowlock's own keys are refused", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if err := lease.CheckKey(q.Key); err != nil {
				return lease.Acquired{Err: err}
			}
			return m.ask(q)
		})
	}, []string{"the keys that rowlock keeps for itself can be locked in a store"}},
}

var keyCatchers = []string{
	"keys are bytes: nothing is folded, trimmed, padded or cut",
	"each of the 256 bytes is a key of its own",
}

func cut(key string, most int) string { return key[:min(len(key), most)] }

// trim leaves a byte, so that the key stays valid.
func trim(key, cutset string) string {
	if short := strings.TrimRight(key, cutset); short != "" {
		return short
	}
	return key
}
