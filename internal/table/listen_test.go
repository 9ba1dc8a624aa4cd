package table_test

import (
	"cmp"
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// ear listens on a store for as long as a test lasts.
type ear struct {
	testing.TB
	heard chan string
	done  chan error
	end   context.CancelFunc
}

// listen returns when the store listens.
func listen(tb testing.TB, s *table.Store) *ear {
	tb.Helper()
	e := deaf(tb, s)
	e.wants("", patience)
	return e
}

// deaf returns at once.
func deaf(tb testing.TB, s *table.Store) *ear {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	e := &ear{tb, make(chan string, 10_000), make(chan error, 1), cancel}
	go func() { e.done <- s.Listen(ctx, func(key string) { e.heard <- key }) }()
	tb.Cleanup(cancel)
	return e
}

// wants waits for the next that is heard.
func (e *ear) wants(key string, within time.Duration) {
	e.Helper()
	select {
	case got := <-e.heard:
		if got != key {
			e.Fatalf("heard %q, want %q", got, key)
		}
	case err := <-e.done:
		e.Fatalf("listen: %v", err)
	case <-time.After(within):
		e.Fatalf("heard nothing within %s, want %q", within, key)
	}
}

func (e *ear) ends(target error) {
	e.Helper()
	select {
	case err := <-e.done:
		wantIs(e, err, target)
	case <-time.After(patience):
		e.Fatal("goes on listening")
	}
}

// on returns a kind of database.
func on(tb testing.TB, kind string) *testdb.Env {
	tb.Helper()
	for _, k := range testdb.Kinds {
		if k.Name == kind {
			return k.Open(tb)
		}
	}
	panic(kind)
}

// openOn opens a store on a pool of its own, as another process would.
func openOn(tb testing.TB, e *testdb.Env, d *sqlstore.Dialect, hints bool) *table.Store {
	tb.Helper()
	return openIn(tb, e.Pool(tb), e, d, hints)
}

func openIn(
	tb testing.TB, pool *sql.DB, e *testdb.Env, d *sqlstore.Dialect, hints bool,
) *table.Store {
	tb.Helper()
	o := table.Options{Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 5 * time.Second, Hints: hints}
	s, _, err := table.Open(tb.Context(), pool, d, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func announce(tb testing.TB, s *table.Store, keys ...string) {
	tb.Helper()
	if err := s.Announce(tb.Context(), keys); err != nil {
		tb.Fatal(err)
	}
}

// hears has a store announce a key until something is heard. On MySQL and MariaDB a message has
// half a second, which a busy machine may exceed, and none is sent for a while after one that was
// late.
func (e *ear) hears(s *table.Store) {
	e.Helper()
	for began := time.Now(); len(e.heard) == 0; time.Sleep(20 * time.Millisecond) {
		_ = s.Announce(e.Context(), []string{"key"})
		if time.Since(began) > 2*patience {
			e.Fatalf("heard nothing within %s", 2*patience)
		}
	}
	<-e.heard
}

// listeners is how many sessions of the server listen on behalf of the Env's tables. The last
// statement of each shows it.
func listeners(tb testing.TB, e *testdb.Env, also string) (n int) {
	tb.Helper()
	query := `SELECT count(*)` + also + ` FROM pg_stat_activity
		WHERE application_name = $1 AND (query LIKE 'LISTEN%' OR query LIKE '-- rowlock listens%')`
	dest := []any{&n}
	if also != "" {
		dest = append(dest, new(int))
	}
	if err := e.DB.QueryRowContext(tb.Context(), query, tb.Name()).Scan(dest...); err != nil {
		tb.Fatal(err)
	}
	return n
}

// named has the Env's connections show the test's name at the server, so that no other test's are
// taken for them.
func named(tb testing.TB, e *testdb.Env) {
	tb.Helper()
	e.Source = with(tb, e.Source, func(u *url.URL) {
		q := u.Query()
		q.Set("application_name", tb.Name())
		u.RawQuery = q.Encode()
	})
}

func with(tb testing.TB, dsn string, change func(*url.URL)) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	change(u)
	return u.String()
}

func TestAListenerWhoseConnectionIsKilledListensAgain(t *testing.T) {
	e := on(t, "postgres")
	named(t, e)
	s := openOn(t, e, e.Dialect, true)
	ear := listen(t, s)
	for range 3 {
		// A session that was ended is shown for a moment longer, and there may be none for one.
		for began := time.Now(); listeners(t, e, "") != 1; time.Sleep(time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatalf("%d sessions listen", listeners(t, e, ""))
			}
		}
		if n := listeners(t, e, `, count(pg_terminate_backend(pid))`); n != 1 {
			t.Fatalf("%d sessions listen", n)
		}
		ear.wants("", patience)
		announce(t, s, "key")
		ear.wants("key", patience)
	}
}

func TestAListenerGivesItsConnectionUp(t *testing.T) {
	e := on(t, "postgres")
	named(t, e)
	pool := e.Pool(t)
	s, _, err := table.Open(t.Context(), pool, e.Dialect, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for range 3 {
		ear := listen(t, s)
		if in := pool.Stats().InUse; in != 3 {
			t.Errorf("%d connections in use by two pinned connections and a listener", in)
		}
		ear.end()
		ear.ends(context.Canceled)
		if in := pool.Stats().InUse; in != 2 {
			t.Errorf("%d connections in use by two pinned connections", in)
		}
	}
	for began := time.Now(); listeners(t, e, "") > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("a session still listens, for whoever gets it from the pool")
		}
	}
}

func TestClosingTheStoreEndsListen(t *testing.T) {
	for _, kind := range []string{"postgres", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			e := on(t, kind)
			s := openOn(t, e, e.Dialect, true)
			ear := listen(t, s)
			wantIs(t, s.Close(), nil)
			ear.ends(lease.ErrClosed)
			wantIs(t, s.Listen(t.Context(), func(string) {}), lease.ErrClosed)
		})
	}
}

func TestAPoolThatIsExhaustedDoesNotKeepAListenerFromEnding(t *testing.T) {
	e := on(t, "postgres")
	pool := e.Pool(t)
	pool.SetMaxOpenConns(2)
	s, _, err := table.Open(t.Context(), pool, e.Dialect, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	if err != nil {
		t.Fatal(err)
	}
	ear := deaf(t, s)
	for pool.Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	wantIs(t, s.Close(), nil)
	ear.ends(lease.ErrClosed)
}

func TestWhereNothingCanBeHeardListenSaysSo(t *testing.T) {
	for _, kind := range []string{"postgres", "mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) {
			e := on(t, kind)
			s := openOn(t, e, e.Dialect, false)
			wantIs(t, s.Listen(t.Context(), func(string) {}), lease.ErrUnsupported)
			announce(t, s, "key") // others may be able to
		})
	}
}

// A pool may wrap its driver. What is sent on the driver's own connection is then past the wrapper.
func TestADriverThatIsWrappedIsListenedOn(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 2)
	s := r.open(t, r.pool, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	ear := listen(t, s)
	announce(t, r.clean, "key")
	ear.wants("key", patience)
}

// What cannot be sent is given up: it was a hint.
func TestAnAnnouncementIsTriedOnce(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 2)
	announce(t, r.store, "key") // prepared
	announces := func(op faultdb.Op) bool { return op.Executes() && strings.Contains(op.Query, "pg_notify") }
	r.log.Reset()
	r.faults.Set(faultdb.OnFunc(announces, faultdb.Always(faultdb.LoseReply())))
	wantIs(t, r.store.Announce(t.Context(), []string{"key"}), lease.ErrUnknown)
	r.faults.Set(nil)
	if n := r.log.Count(announces); n != 1 {
		t.Errorf("tried %d times", n)
	}
}

func TestStoresWithOtherTablesAreNotHeard(t *testing.T) {
	e, other := on(t, "postgres"), on(t, "postgres")
	here, there, stranger := openOn(t, e, e.Dialect, true), openOn(t, e, e.Dialect, true), openOn(t, other, other.Dialect, true)
	ear, strange := listen(t, here), listen(t, stranger)
	announce(t, stranger, "theirs")
	announce(t, there, "ours", "\x00\xff")
	ear.wants("ours", patience)
	ear.wants("\x00\xff", patience)
	strange.wants("theirs", patience)
	if len(ear.heard)+len(strange.heard) > 0 {
		t.Error("somebody heard more")
	}
}

func TestAMessageThatCannotBeReadIsHeardAsAnyKey(t *testing.T) {
	e := on(t, "postgres")
	named(t, e)
	s := openOn(t, e, e.Dialect, true)
	ear := listen(t, s)
	var channel string
	err := e.DB.QueryRowContext(t.Context(), `SELECT split_part(query, '"', 2) FROM pg_stat_activity
		WHERE application_name = $1 AND query LIKE 'LISTEN%'`, t.Name()).Scan(&channel)
	if err != nil || len(channel) > 63 {
		t.Fatalf("channel %q, %v", channel, err)
	}
	for _, payload := range []string{"", "not hexadecimal", "abc", strings.Repeat("61", lease.MaxKey+1)} {
		e.Exec(t, `SELECT pg_notify(?, ?)`, channel, payload)
		ear.wants("", patience)
	}
}

func TestADSNOfItsOwnToListenOn(t *testing.T) {
	e := on(t, "postgres")
	d := func(dsn string) *sqlstore.Dialect {
		return sqlstore.Of(postgres.New(dialect.Prefix(e.Dialect.Names().Prefix), postgres.Listen(dsn)))
	}
	s := openOn(t, e, d(e.Source), false) // with nothing to spare in the pool
	ear := listen(t, s)
	announce(t, s, "key")
	ear.wants("key", patience)

	_, _, err := table.Open(t.Context(), e.DB, d("postgres://host:port/"), table.Options{Connections: 1, Timeout: time.Second})
	wantIs(t, err, lease.ErrConfig)
}

// What others commit is heard, by another process or through another connection of ours; what the
// store commits itself is not.
func TestSQLiteHearsTheCommitsOfOthers(t *testing.T) {
	e := on(t, "sqlite")
	here, there := openOn(t, e, e.Dialect, true), openOn(t, e, e.Dialect, true)
	ear := listen(t, here)
	for range 10 {
		l := hold(t, there, "key")
		ear.wants("", patience)
		release(t, there, l)
		ear.wants("", patience)
	}
	release(t, here, hold(t, here, "key"))
	select {
	case <-ear.heard:
		t.Error("a commit of its own was heard")
	case <-time.After(50 * time.Millisecond):
	}
}
