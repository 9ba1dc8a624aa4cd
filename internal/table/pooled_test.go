package table_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// behind returns tables seen directly, and the same seen through PgBouncer in transaction mode.
func behind(t *testing.T) (direct, pooled *testdb.Env) {
	t.Helper()
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	direct = on(t, "postgres")
	return direct, direct.Behind(t, postgres.Listen(direct.Source))
}

// Two stores at once, each with more pinned connections than the pooler has server connections, so
// that these change hands.
func TestNothingOfAPinnedConnectionBehindPgBouncerIsLeftInASession(t *testing.T) {
	direct, pooled := behind(t)
	sessions := func(setting string) map[string]bool {
		found := make(map[string]bool)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var value string
				if err := pooled.DB.QueryRowContext(t.Context(), `SELECT coalesce(current_setting($1, true), '') FROM pg_sleep(0.05)`, setting).Scan(&value); err != nil {
					t.Error(err)
				}
				mu.Lock()
				found[value] = true
				mu.Unlock()
			})
		}
		wg.Wait()
		return found
	}
	var stores []*table.Store
	for range 2 {
		s, _, err := table.Open(t.Context(), pooled.Pool(t), pooled.Dialect, table.Options{Connections: 6, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			s, key := stores[i%2], fmt.Sprint("key", i)
			for range 5 {
				l := hold(t, s, key)
				got, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
				if err != nil || got[0].Outcome != lease.Extended {
					t.Errorf("got %+v, %v", got, err)
				}
				release(t, s, l)
			}
		})
	}
	wg.Wait()
	direct.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second}`)
	if n, err := stores[0].Sweep(t.Context(), lease.SweepOptions{}); err != nil || n != 24 {
		t.Errorf("swept %d, %v", n, err)
	}
	for setting, value := range map[string]string{
		"lock_timeout": "0", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "plan_cache_mode": "auto",
	} {
		if got := sessions(setting); len(got) != 1 || !got[value] {
			t.Errorf("%s is %v in the sessions of others", setting, got)
		}
	}
	var prepared int
	// Other tests' neighbors prepare too.
	ours := `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%/* rowlock %'`
	if err := pooled.DB.QueryRowContext(t.Context(), ours).Scan(&prepared); err != nil || prepared > 0 {
		t.Errorf("%d statements are prepared in the session of others, %v", prepared, err)
	}
}

func TestBehindPgBouncerOneListensOnADSNOfItsOwn(t *testing.T) {
	direct, pooled := behind(t)
	s := openOn(t, pooled, pooled.Dialect, true)
	ear := listen(t, s)
	announce(t, openOn(t, pooled, pooled.Dialect, false), "key")
	ear.wants("key", patience)

	none := openOn(t, pooled, sqlstore.Of(postgres.New(dialect.Prefix(direct.Dialect.Names().Prefix), postgres.Pooled())), true)
	wantIs(t, none.Listen(t.Context(), func(string) {}), lease.ErrUnsupported)
}

// What Open says where it can be seen that the pool leads through a pooler.
func TestOpenBehindPgBouncerNamesTheCure(t *testing.T) {
	direct, pooled := behind(t)
	prefix := dialect.Prefix(direct.Dialect.Names().Prefix)
	role := func(settings ...string) string {
		name := fmt.Sprintf("pooled_%s%d", direct.Dialect.Names().Prefix, keys.Add(1))
		direct.Exec(t, `DROP ROLE IF EXISTS `+name)
		direct.Exec(t, `CREATE ROLE `+name+` SUPERUSER LOGIN`)
		t.Cleanup(func() { direct.Exec(t, `DROP ROLE `+name) })
		for _, s := range settings {
			direct.Exec(t, `ALTER ROLE `+name+` SET `+s)
		}
		return with(t, direct.Source, func(u *url.URL) {
			u.User = url.User(name)
			u.RawQuery += "&default_query_exec_mode=exec"
		})
	}
	for name, c := range map[string]struct {
		source string
		opts   []dialect.Option
		is     error
		says   string
	}{
		"without Pooled": {pooled.Source, nil, lease.ErrConfig, "postgres.Pooled()"},
		"a driver that prepares": {
			strings.Replace(pooled.Source, "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1),
			[]dialect.Option{postgres.Pooled()},
			lease.ErrConfig, "default_query_exec_mode=exec",
		},
		"a driver that prepares, without Pooled": {
			strings.Replace(pooled.Source, "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1), nil,
			lease.ErrConfig, "postgres.Pooled()",
		},
		"a user who may not write": {
			role("default_transaction_read_only = on"),
			[]dialect.Option{postgres.Pooled()},
			lease.ErrReadOnly, "default_transaction_read_only is on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := *pooled
			e.Source = c.source
			s, _, err := table.Open(t.Context(), e.Pool(t), sqlstore.Of(postgres.New(append(c.opts, prefix)...)), table.Options{Connections: 4, Timeout: 5 * time.Second})
			if err == nil {
				_ = s.Close()
			}
			if wantIs(t, err, c.is); !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			t.Log(err)
		})
	}
}

// A pooler that keeps a session for each client is none to be refused.
func TestOpenBehindPgBouncerInSessionModeNeedsNothing(t *testing.T) {
	direct, pooled := behind(t)
	pooled.Source = with(t, pooled.Source, func(u *url.URL) { u.Path = "/rowlock_session" })
	s := openOn(t, pooled, direct.Dialect, true)
	ear := listen(t, s)
	announce(t, s, "key")
	ear.wants("key", patience)
	release(t, s, hold(t, s, "key"))
}
