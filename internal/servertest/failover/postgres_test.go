package failover

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/schema"
)

// addressOf is the host and port of a DSN of one host.
func addressOf(tb testing.TB, source string) string {
	tb.Helper()
	u, err := url.Parse(source)
	if err != nil {
		tb.Fatal(err)
	}
	return u.Host
}

// multiHost is a pool that knows both servers and takes the one that takes writes.
func multiHost(tb testing.TB, r *route, a, b string) *sql.DB {
	tb.Helper()
	cfg := parsed(tb, "postgres://postgres@"+a+","+b+
		"/postgres?sslmode=disable&target_session_attrs=read-write")
	cfg.DialFunc = r.dial
	return opened(tb, cfg)
}

// named is a pool that knows one name.
func named(tb testing.TB, r *route) *sql.DB {
	tb.Helper()
	cfg := parsed(tb, "postgres://postgres@primary.test/postgres?sslmode=disable")
	cfg.LookupFunc, cfg.DialFunc = r.lookup, r.dial
	return opened(tb, cfg)
}

func parsed(tb testing.TB, source string) *pgx.ConnConfig {
	tb.Helper()
	cfg, err := pgx.ParseConfig(source)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

func opened(tb testing.TB, cfg *pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(*cfg)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(tb testing.TB, db *sql.DB, statements ...string) {
	tb.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(tb.Context(), s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

const reload = `SELECT pg_reload_conf()`

// One pair of servers serves all parts, and the last ends it.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	p := standby.StartAsynchronous(t)
	if err := schema.Migrate(t.Context(), p.DB, postgres.New()); err != nil {
		t.Fatal(err)
	}
	t.Run("RequireSync", func(t *testing.T) { postgresRequiresSync(t, p) })
	t.Run("read-only", func(t *testing.T) {
		admin := multiPool(t, p.Source+"&default_transaction_read_only=off")
		turnsReadOnly(t, func() *sql.DB { return multiPool(t, p.Source) }, postgres.New(), func(on bool) {
			value := map[bool]string{true: "on", false: "off"}[on]
			exec(t, admin, `ALTER SYSTEM SET default_transaction_read_only = `+value, reload)
		})
	})
	t.Run("promotion", func(t *testing.T) { postgresPromotes(t, p) })
}

func multiPool(tb testing.TB, source string) *sql.DB { return opened(tb, parsed(tb, source)) }

func postgresPromotes(t *testing.T, p *standby.Pair) {
	a, b := addressOf(t, p.Source), addressOf(t, p.StandbySource())
	r, dns := newRoute(""), newRoute(a)
	one, two := client(t, multiHost(t, r, a, b), postgres.New()), client(t, multiHost(t, r, a, b), postgres.New())
	three := client(t, named(t, dns), postgres.New())
	strict := client(t, multiHost(t, newRoute(""), a, b), postgres.New(),
		func(c *rowlock.Config) { c.RequireSync = true })
	kept, err := one.Lock(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	waiter, other := waits(t, two, "kept"), waits(t, three, "kept")
	f, stop := start(t, one, two, three)
	before := r.count(b)
	began := time.Now()
	p.Promote(t)
	dns.change(b)
	back := time.Now()
	t.Logf("the promotion took %s", back.Sub(began).Round(time.Millisecond))
	// A tenth of a second is what the pauses of pinned connections allow; the rest is for a slow
	// machine. The standby may lack the last release of each busy key, which then is locked for a
	// lease.
	fresh := granted(t, one, "fresh")
	if took := time.Since(back); took > 15*time.Second {
		t.Errorf("the next grant of a key that was free took %s", took)
	}
	if took := f.resumed(back); took > ttl+15*time.Second {
		t.Errorf("the next grant took %s", took)
	}
	waiter.stillWaits(t)
	other.stillWaits(t)
	if err := kept.Context().Err(); err != nil {
		t.Errorf("the lock of before has ended, though its row has survived: %v", err)
	}
	for _, l := range []*rowlock.Lock{kept, fresh} {
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
	passesOn(t, kept.Token(), waiter, other)
	stop()
	fewConnections(t, r.count(b)-before, 2, time.Since(began))
	strictWaits(t, p, strict)
}

// granted returns a lock on a key that no lease is on.
func granted(t *testing.T, c *rowlock.Client, key string) *rowlock.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := c.Lock(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// passesOn has each of two waiters get the key in turn.
func passesOn(t *testing.T, token rowlock.Token, a, b *pending) {
	t.Helper()
	first, second := a, b
	select {
	case <-a.ended:
	case <-b.ended:
		first, second = b, a
	case <-time.After(patience):
	}
	for _, p := range []*pending{first, second} {
		l := p.granted(t)
		if l.Token() <= token {
			t.Errorf("granted with token %d after %d", l.Token(), token)
		}
		token = l.Token()
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// fewConnections bounds what clients connect: each pinned connection, what listens and what
// announces, twice; and while no server takes writes, what the pauses of pinned connections allow,
// with their first short ones.
func fewConnections(t *testing.T, n, clients int, outage time.Duration) {
	t.Helper()
	most := clients * (2*(3+2) + 10 + 3*int(outage/(25*time.Millisecond)))
	t.Logf("%d clients connected %d times in %s", clients, n, outage.Round(time.Millisecond))
	if n > most {
		t.Errorf("%d clients made %d connections in %s, want at most %d", clients, n, outage, most)
	}
}

// strictWaits shows that a client with RequireSync grants nothing on the new primary until it has a
// standby.
func strictWaits(t *testing.T, p *standby.Pair, strict *rowlock.Client) {
	t.Helper()
	l, err := strict.TryLock(t.Context(), "strict")
	if !errors.Is(err, rowlock.ErrNotSynchronous) || !strings.Contains(err.Error(), "synchronous_standby_names") {
		t.Fatalf("on a primary without standby: %v, %v, want ErrNotSynchronous", l, err)
	}
	p.Archive(t)
	servertest.Eventually(t, "commits to wait for a standby again", func() bool {
		l, err = strict.TryLock(t.Context(), "strict")
		return err == nil
	})
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
