package optimistic_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The one interleaving that a floor without a lock leaves open: a key is made, granted up to token
// 3, given back, and deleted by a reaper that has not committed yet; another's insert has read the
// old floor by then, and waits for that very commit. Its row must not have token 1 again, for no
// moment that a client can see.
func TestAReaperBesideAnInsertNeverLetsATokenComeBack(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("in SQLite a write begins when the other has ended")
		}
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(level, func(t *testing.T) {
				strict := isolated(e, level)
				for range 10 { // a database that is slow may give the insert up before its wait was seen
					if raceReaper(t, strict) {
						return
					}
				}
				t.Error("the insert never met the reaper: the test proves nothing")
			})
		}
	})
}

// isolated is e with another default isolation: the second look at the floor must not be at what
// the first saw.
func isolated(e *testdb.Env, level string) *testdb.Env {
	strict := *e
	switch e.Name {
	case "postgres":
		strict.Source += "&default_transaction_isolation=" + url.PathEscape(level)
	case "mariadb":
		strict.Source += "?tx_isolation=" + url.QueryEscape("'"+strings.ReplaceAll(level, " ", "-")+"'")
	default:
		strict.Source += "?transaction_isolation=" + url.QueryEscape("'"+strings.ReplaceAll(level, " ", "-")+"'")
	}
	return &strict
}

// raceReaper plays it through, and reports whether the token had to be raised.
func raceReaper(t *testing.T, e *testdb.Env) (met bool) {
	t.Helper()
	e.Exec(t, `DELETE FROM {rowlock}`)
	e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0`)
	late, commit := faultdb.NewGate(), faultdb.NewGate()
	defer late.Release()
	defer commit.Release()
	insert, end := on("cas-insert", faultdb.Block(late)), faultdb.NewToggle(faultdb.OnCommitText(faultdb.Nth(1, faultdb.Block(commit))))
	inserter, log := tapped(t, e, insert)
	reaper, _ := tapped(t, e, end)
	other := open(t, e)

	insert.On()
	var a lease.Acquired
	got := make(chan error, 1)
	go func() {
		req := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		all, err := inserter.Acquire(context.Background(), []lease.AcquireRequest{req})
		if err == nil {
			a = all[0]
		}
		got <- err
	}()
	<-late.Arrived() // it has seen that there is no row
	var last lease.Token
	for range 3 {
		l := hold(t, other, "k")
		last = l.Token
		release(t, other, l)
	}
	end.On()
	swept := make(chan error, 1)
	go func() {
		_, err := reaper.Sweep(context.Background(), lease.SweepOptions{})
		swept <- err
	}()
	<-commit.Arrived() // the floor is raised and the row deleted, and no client knows
	late.Release()
	waits(t, e)
	commit.Release()
	err := <-got
	ok(t, <-swept)
	if errors.Is(err, lease.ErrBusy) || errors.Is(err, lease.ErrUnknown) || err == nil && !a.Granted {
		return false // the insert was given up, and the row of before was met while its reaper had it
	}
	if err != nil || a.Token <= last {
		t.Fatalf("got %+v, %v after token %d", a, err, last)
	}
	row, err := other.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
	ok(t, err)
	if row[0].Token != a.Token {
		t.Errorf("the row has token %d, and %d was granted", row[0].Token, a.Token)
	}
	return log.Count(runs("cas-raise")) > 0
}

// waits returns when some transaction waits for a row, or after a moment, if it has been and gone.
func waits(t *testing.T, e *testdb.Env) {
	t.Helper()
	prefix := e.Dialect.Names().Prefix
	query := map[string]string{
		"postgres": `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT % INTO %"` + prefix + `%'`,
		"mariadb":  `SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%` + prefix + `%'`,
		"mysql":    `SELECT count(*) FROM performance_schema.data_locks WHERE lock_status = 'WAITING' AND object_name = '` + prefix + `rowlock'`,
	}[e.Name]
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		var n int
		ok(t, e.DB.QueryRowContext(t.Context(), query).Scan(&n))
		if n > 0 {
			return
		}
	}
}

// A client that dies before its new row is committed leaves none behind; one that only lost the
// reply finds its row again.
func TestARowThatIsMadeIsMadeOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for name, fault := range map[string]faultdb.Fault{"before the commit": faultdb.FailBeforeSend(), "after it": faultdb.LoseReply()} {
			cut := faultdb.NewToggle(faultdb.OnCommitText(faultdb.Nth(1, fault)))
			s, _ := tapped(t, e, cut)
			cut.On()
			l, a := ask(t, s, name)
			rows, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{name}})
			ok(t, err)
			if !a.Granted || !a.Unknown || len(rows) != 1 || rows[0].Lease != l {
				t.Errorf("cut %s: %+v, and the rows are %+v", name, a, rows)
			}
			release(t, s, l)
		}
	})
}
