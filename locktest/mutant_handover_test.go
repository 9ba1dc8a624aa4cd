package locktest

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

var handOverFlaws = []flaw{
	{"a hand-over is a release and an acquire", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			m.free(h.From)
			return m.ask(h.To)
		})
	}, []string{"what is gone is not handed over"}},
	{"a hand-over keeps the token", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			a := m.handed(h)
			a.Token--
			return a
		})
	}, []string{"a held lease is handed over with the next token"}},
	{"a hand-over forgets the note", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired { h.To.Note = ""; return m.handed(h) })
	}, []string{"a hand-over takes owner, note and full TTL from the request"}},
	{"a hand-over of an expired lease gives nothing", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			if row, _ := m.row(h.From.Key); !row.Held {
				return lease.Acquired{}
			}
			return m.handed(h)
		})
	}, []string{"an expired lease that nobody took can be handed over"}},
	{"a hand-over ignores the token it gives up", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			if row, ok := m.row(h.From.Key); ok {
				h.From.Token = row.Token
			}
			return m.handed(h)
		})
	}, []string{"what is gone is not handed over"}},
	{"a hand-over ignores the owner it gives up", func(m *mutant) {
		var mu sync.Mutex
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			mu.Lock()
			defer mu.Unlock()
			if row, ok := m.row(h.From.Key); ok && row.Held {
				h.From = row.Lease
			}
			return m.handed(h)
		})
	}, []string{"what is gone is not handed over", "64 hand-overs of one lease grant once", "the old owner has nothing after a hand-over"}},
	{"a hand-over counts past the last token", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			a := m.handed(h)
			if row, _ := m.row(h.From.Key); !a.Granted && row.Lease == h.From {
				return lease.Acquired{Granted: true, Token: row.Token + 1}
			}
			return a
		})
	}, []string{"a hand-over of exhausted tokens gives nothing"}},
	{"a hand-over goes to anybody", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			if h.To.Owner.IsZero() || h.To.Key != h.From.Key {
				m.free(h.From)
				return lease.Acquired{Granted: true, Token: h.From.Token + 1}
			}
			return m.handed(h)
		})
	}, []string{"a hand-over to nobody or to another key is refused"}},
	{"a repeated hand-over is refused", func(m *mutant) {
		m.eachHandOver(func(h lease.HandOver) lease.Acquired {
			if row, _ := m.row(h.From.Key); row.Owner == h.To.Owner {
				return lease.Acquired{}
			}
			return m.handed(h)
		})
	}, []string{"a repeated hand-over returns the lease as it is"}},
}

func (m *mutant) handed(h lease.HandOver) lease.Acquired {
	a, err := m.Store.HandOver(context.Background(), []lease.HandOver{h})
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a[0]
}

func (m *mutant) eachHandOver(answer func(h lease.HandOver) lease.Acquired) {
	m.handOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
		return each(ctx, items, answer)
	}
}

func (m *mutant) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return m.handOver(ctx, items)
}
