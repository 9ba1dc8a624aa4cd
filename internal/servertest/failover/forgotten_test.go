package failover

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// seldom is how often a server writes what no commit waits for: by then a test has killed it.
const seldom = "wal_writer_delay=10s"

// crashing is a PostgreSQL that a test kills.
type crashing struct {
	*testing.T
	*standby.Lone
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	c := &crashing{t, standby.StartLone(t, "-c", seldom)}
	if err := schema.Migrate(t.Context(), c.DB, postgres.New()); err != nil {
		t.Fatal(err)
	}
	return c
}

// holder returns the owner of a row, which is zero if the key is free, and its token.
func (c *crashing) holder(key string) (o lease.Owner, token lease.Token) {
	c.Helper()
	return holderIn(c, c.DB, key)
}

func holderIn(tb testing.TB, db *sql.DB, key string) (o lease.Owner, token lease.Token) {
	tb.Helper()
	var owner []byte
	servertest.Eventually(tb, "the server to answer", func() bool { // a pool has connections of before
		return db.QueryRowContext(tb.Context(), `SELECT owner, token FROM rowlock WHERE key = $1`,
			[]byte(key)).Scan(&owner, &token) == nil
	})
	copy(o[:], owner)
	return o, token
}

// A server that crashes right after Unlock has returned forgets the release. The next caller waits
// for the rest of the lease, and gets a larger token.
func TestACrashForgetsAReleaseAndNeverAToken(t *testing.T) {
	t.Parallel()
	c := newCrashing(t)
	for _, keys := range [][]string{{"one"}, {"several 1", "several 2", "several 3"}} {
		t.Run(fmt.Sprint(len(keys), " keys"), func(t *testing.T) {
			c := &crashing{t, c.Lone}
			locks := c.client(3*time.Second, false)
			var token map[string]lease.Token
			for try := 1; ; try++ {
				token = c.unlocks(locks, keys)
				c.Crash(t)
				if c.forgot(token) {
					break
				}
				if try == 5 { // a write every 10 s comes in between once, and not each time
					t.Fatal("no crash has forgotten a release: it waits for the disk")
				}
			}
			began := time.Now()
			for _, key := range keys {
				l := c.locks(locks, key)
				if l.Token() <= token[key] {
					t.Errorf("%q: granted with token %d after %d", key, l.Token(), token[key])
				}
			}
			t.Logf("the next grants came %s after the crash", time.Since(began).Round(time.Millisecond))
		})
	}
}

// forgot reports whether a crash has forgotten all releases of keys that were held with tokens. One
// that it has forgotten has left the key with its late holder.
func (c *crashing) forgot(tokens map[string]lease.Token) bool {
	c.Helper()
	for key, token := range tokens {
		o, at := c.holder(key)
		if at != token {
			c.Fatalf("after the crash the token of %q is %d, want %d", key, at, token)
		}
		if o.IsZero() {
			return false
		}
	}
	return true
}

// With DurableRelease a crash forgets no release.
func TestADurableReleaseOutlivesACrash(t *testing.T) {
	t.Parallel()
	c := newCrashing(t)
	keys := []string{"a", "b", "c"}
	c.unlocks(c.client(time.Hour, true), keys)
	c.unlocks(c.client(time.Hour, true), []string{"alone"})
	c.Crash(t)
	for _, key := range append(keys, "alone") {
		if o, _ := c.holder(key); !o.IsZero() {
			t.Errorf("after the crash %q is held", key)
		}
	}
}

func (c *crashing) client(ttl time.Duration, durable bool) *rowlock.Client {
	c.Helper()
	locks, err := rowlock.Open(multiPool(c, c.Source), postgres.New(), servertest.Config(
		servertest.WithTTL(ttl), func(c *rowlock.Config) { c.DurableRelease = durable }))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = locks.Close() })
	return locks
}

// locks waits as long as it must: the pool's connections are those of before.
func (c *crashing) locks(locks *rowlock.Client, key string) (l *rowlock.Lock) {
	c.Helper()
	servertest.Eventually(c, "a grant of "+key, func() bool {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		var err error
		l, err = locks.Lock(ctx, key)
		return err == nil
	})
	return l
}

// unlocks locks keys and unlocks them. It returns their tokens.
func (c *crashing) unlocks(locks *rowlock.Client, keys []string) map[string]lease.Token {
	c.Helper()
	var held *rowlock.Locks
	// After a crash the pool has connections of before.
	servertest.Eventually(c, "a grant of all keys", func() bool {
		var err error
		held, err = locks.LockAll(c.Context(), keys)
		return err == nil
	})
	tokens := make(map[string]lease.Token)
	for _, key := range keys {
		tokens[key] = held.Lock(key).Token()
	}
	if err := held.Unlock(c.Context()); err != nil {
		c.Fatal(err)
	}
	for _, key := range keys {
		if o, _ := c.holder(key); !o.IsZero() {
			c.Fatalf("%q is unlocked, and has owner %v", key, o)
		}
	}
	return tokens
}

// What grants or extends a lease is durable when it is acknowledged, in a session whose releases
// are not, and it makes the release before it durable.
func TestWhatGrantsOutlivesACrash(t *testing.T) {
	t.Parallel()
	c := newCrashing(t)
	d := sqlstore.Of(postgres.New())
	to := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Hour}
	for what, do := range map[string]func(s *conn.Session, held lease.Lease) error{
		"acquire": func(s *conn.Session, held lease.Lease) error {
			r := lease.AcquireRequest{Key: "new", Owner: to.Owner, TTL: time.Hour}
			_, err := d.Acquire(t.Context(), s, adapter.Insert, r)
			return err
		},
		"hand over": func(s *conn.Session, held lease.Lease) error {
			_, err := d.HandOver(t.Context(), s, lease.HandOver{From: held, To: to})
			return err
		},
		"a batch with a release": func(s *conn.Session, held lease.Lease) error {
			return appliesAll(t, d, s, sqlstore.Change{From: held},
				sqlstore.Change{From: lease.Lease{Key: "other"}, To: to.Owner, TTL: time.Hour})
		},
		"renew": func(s *conn.Session, held lease.Lease) error {
			_, err := d.Renew(t.Context(), s, []lease.RenewRequest{{Lease: held, TTL: 2 * time.Hour}})
			return err
		},
		"pass": func(s *conn.Session, held lease.Lease) error {
			_, err := d.Pass(t.Context(), s, held)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := &crashing{t, c.Lone}
			exec(t, c.DB, `DELETE FROM rowlock`)
			s := c.session(d)
			acquire := func(key string) lease.Lease {
				l := lease.Lease{Key: key, Owner: lease.NewOwner()}
				got, err := d.Acquire(t.Context(), s, adapter.Insert,
					lease.AcquireRequest{Key: key, Owner: l.Owner, TTL: time.Hour})
				if err != nil || !got.Granted {
					t.Fatal(got, err)
				}
				l.Token = got.Token
				return l
			}
			released, freed, held := acquire("released"), acquire("other"), acquire("k")
			for _, l := range []lease.Lease{released, freed} {
				if got, err := d.Release(t.Context(), s, l); err != nil || got.Gone {
					t.Fatal(got, err)
				}
			}
			if err := do(s, held); err != nil {
				t.Fatal(err)
			}
			before := c.rows()
			c.Crash(t)
			if after := c.rows(); after != before {
				t.Errorf("a crash after %s has left\n%s of\n%s", what, after, before)
			}
		})
	}
}

func appliesAll(t *testing.T, d *sqlstore.Dialect, s *conn.Session, changes ...sqlstore.Change) error {
	got, err := d.Apply(t.Context(), s, changes, false)
	for i := range got {
		if got[i].Outcome != sqlstore.Done {
			t.Fatalf("change %d: %+v", i, got[i])
		}
	}
	return err
}

func (c *crashing) session(d *sqlstore.Dialect) *conn.Session {
	c.Helper()
	pinned, err := multiPool(c, c.Source).Conn(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	s := conn.NewSession(pinned)
	s.EraAt(0)
	s.Relaxed = true
	c.Cleanup(s.Discard)
	if err := d.Setup(c.Context(), s); err != nil {
		c.Fatal(err)
	}
	return s
}

// rows is what the table says, in one text.
func (c *crashing) rows() (text string) {
	c.Helper()
	servertest.Eventually(c, "the server to answer", func() bool {
		return c.DB.QueryRowContext(c.Context(), `SELECT string_agg(r::text, E'\n' ORDER BY key) FROM rowlock AS r`).Scan(&text) == nil
	})
	return text
}

// A release waits for no synchronous standby, so that one that hangs does not keep a key locked. If
// the primary then dies, the new one still has the late holder. RequireSync changes neither.
func TestAFailoverForgetsAReleaseAndNeverAToken(t *testing.T) {
	t.Parallel()
	p := standby.Start(t)
	if err := schema.Migrate(t.Context(), p.DB, postgres.New()); err != nil {
		t.Fatal(err)
	}
	open := func(source string, change ...func(*rowlock.Config)) *rowlock.Client {
		c, err := rowlock.Open(multiPool(t, source), postgres.New(),
			servertest.Config(append(change, servertest.WithTTL(10*time.Second))...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	locks := open(p.Source, func(c *rowlock.Config) { c.RequireSync, c.Connections = true, 1 })
	l, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	p.Hang(t)
	if err := l.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock while the standby hangs: %v", err)
	}
	if o, _ := holderIn(t, p.DB, "k"); !o.IsZero() {
		t.Error("the key is not free on the primary")
	}
	// The same pinned connection waits for the standby with the next grant.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := locks.TryLock(ctx, "k"); err == nil {
		t.Errorf("granted with token %d while the standby hangs", l.Token())
	}
	source := p.FailOver(t)
	_ = locks.Close() // its servers are gone
	after := multiPool(t, source)
	if o, token := holderIn(t, after, "k"); o.IsZero() || token != l.Token() {
		t.Fatalf("the new primary has owner %v and token %d, want the late holder and %d", o, token, l.Token())
	}
	next := open(source)
	defer func() { _ = next.Close() }()
	again, err := next.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() <= l.Token() {
		t.Errorf("granted with token %d after %d", again.Token(), l.Token())
	}
	if err := again.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
