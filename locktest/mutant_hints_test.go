package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var hintFlaws = []flaw{
	{"nobody is ever seen to wait", func(m *mutant) {
		m.awaited = func(_ context.Context, _ lease.Owner, keys []string) ([]bool, error) {
			return make([]bool, len(keys)), nil
		}
	}, []string{"a process that waits is seen by others and not by itself"}},
	{"a process sees itself wait", func(m *mutant) {
		m.awaited = func(ctx context.Context, _ lease.Owner, keys []string) ([]bool, error) {
			return m.Store.Awaited(ctx, lease.Owner{}, keys)
		}
	}, []string{"a process that waits is seen by others and not by itself"}},
	{"only the first key of a batch is noted", func(m *mutant) {
		m.await = func(ctx context.Context, p lease.Owner, id string, keys []string, d time.Duration) error {
			return m.Store.Register(ctx, p, id, keys[:1], d)
		}
	}, []string{"registrations are told apart by key"}},
	{"a registration is not removed", func(m *mutant) {
		m.desist = func(context.Context, lease.Owner, []string) error { return nil }
	}, []string{"a registration ends when it is removed, and no other does", "a release without waiters does not say that there are any"}},
	{"a registration never lapses", func(m *mutant) {
		m.await = func(ctx context.Context, p lease.Owner, id string, keys []string, _ time.Duration) error {
			return m.Store.Register(ctx, p, id, keys, time.Hour)
		}
	}, []string{"a registration ends by time, unless it is repeated"}},
	{"a repeated registration is not extended", func(m *mutant) {
		noted := make(map[string]bool)
		m.await = func(ctx context.Context, p lease.Owner, id string, keys []string, d time.Duration) error {
			fresh := keys[:0:0]
			for _, k := range keys {
				if !noted[k] {
					fresh = append(fresh, k)
				}
				noted[k] = true
			}
			return m.Store.Register(ctx, p, id, fresh, d)
		}
	}, []string{"a registration ends by time, unless it is repeated"}},
	{"a client that asks is taken for a waiter", func(m *mutant) {
		m.awaited = func(ctx context.Context, p lease.Owner, keys []string) ([]bool, error) {
			got, err := m.Store.Awaited(ctx, p, keys)
			_ = m.Store.Register(ctx, p, "", keys, time.Hour)
			return got, err
		}
	}, []string{"to ask who waits changes nothing"}},
	{"a listener is not told that it listens", func(m *mutant) {
		m.listen = func(ctx context.Context, heard func(string)) error {
			return m.Store.Listen(ctx, func(key string) {
				if key != "" {
					heard(key)
				}
			})
		}
	}, []string{"whoever begins to listen is told that any key may be free"}},
	{"announcements are lost", func(m *mutant) { m.DropHints(true) }, []string{"a listener hears what another process announces"}},
	{"only the first key is announced", func(m *mutant) {
		m.announce = func(ctx context.Context, keys []string) error { return m.Store.Announce(ctx, keys[:1]) }
	}, []string{"an announcement is of all its keys"}},
	{"a listener leaves a goroutine behind", func(m *mutant) {
		m.listen = func(ctx context.Context, heard func(string)) error {
			go func() { <-m.over }()
			return m.Store.Listen(ctx, heard)
		}
	}, []string{"to listen ends with its context and leaves nothing running"}},
}

func (m *mutant) Register(ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration) error {
	return m.await(ctx, process, identity, keys, d)
}

func (m *mutant) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	return m.desist(ctx, process, keys)
}

func (m *mutant) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return m.awaited(ctx, process, keys)
}

func (m *mutant) Listen(ctx context.Context, heard func(key string)) error {
	return m.listen(ctx, heard)
}

func (m *mutant) Announce(ctx context.Context, keys []string) error { return m.announce(ctx, keys) }
