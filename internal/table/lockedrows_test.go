package table_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// An expired lease may be in its holder's transaction. No caller waits for that, neither who wants
// the key nor a batch in which it is renewed.
func TestEachCallPassesOverARowThatIsLocked(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		k := lease.AcquireRequest{Key: "k", Owner: next, TTL: time.Hour, Note: "n"}
		ways := map[string]func(ctx context.Context, s *conn.Session) (bool, error){
			"claim": func(ctx context.Context, s *conn.Session) (bool, error) {
				a, err := e.Dialect.Claim(ctx, s, k)
				return a.Granted, err
			},
			"renew": func(ctx context.Context, s *conn.Session) (bool, error) {
				r := lease.RenewRequest{Lease: lease.Lease{Key: "k", Owner: holder, Token: 5}, TTL: time.Hour}
				got, err := e.Dialect.Renew(ctx, s, []lease.RenewRequest{r})
				return err == nil && got[0].Outcome == lease.Extended, err
			},
			"apply any": func(ctx context.Context, s *conn.Session) (bool, error) {
				token, err := tokenIn(e.Dialect.ApplyAny(ctx, s, []sqlstore.Change{toNext("k")}, 1, nil))
				return token > 0, err
			},
		}
		for name, all := range map[string]bool{"apply": false, "apply all": true} {
			ways[name] = func(ctx context.Context, s *conn.Session) (bool, error) {
				token, err := tokenIn(e.Dialect.Apply(ctx, s, []sqlstore.Change{toNext("k")}, all))
				return token > 0, err
			}
		}
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			ways[strategy.String()] = func(ctx context.Context, s *conn.Session) (bool, error) {
				a, err := e.Dialect.Acquire(ctx, s, strategy, k)
				return a.Granted, err
			}
		}
		for way, call := range ways {
			set := expired
			if way == "renew" {
				set = "note = note"
			}
			for _, waiting := range []string{"", "n@1"} {
				ready(t, e, set)
				waitsFor(t, e, "k", waiting)
				first := begun(t, e)
				do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
				did, err := call(t.Context(), readySession(t, e, 0))
				if err != nil && !errors.Is(err, sqlstore.ErrRowLocked) || did {
					t.Errorf("%s: done: %t, %v", way, did, err)
				}
				do(t, first, "ROLLBACK")
				if owner, token := owned(t, e); owner != string(holder[:]) || token != 5 {
					t.Errorf("%s: the row has owner %x and token %d", way, owner, token)
				}
			}
		}
	})
}

// A waiter's heartbeat and its leaving do not wait for the ticket of another. On PostgreSQL a sweep
// passes over a ticket that is being changed.
func TestEachCallPassesOverTheTicketOfAnother(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		ready(t, e, "note = note")
		a, b := waiterOf('a'), waiterOf('b')
		named := []lease.Lease{{Key: "k", Owner: a}}
		calls := map[string]func() error{
			"join":  func() error { return e.Dialect.Join(t.Context(), on, []lease.Ticket{ticketOf('a')}) },
			"leave": func() error { return e.Dialect.Leave(t.Context(), on, named) },
			"reap":  func() error { return e.Dialect.DropDead(t.Context(), on, named, 0) },
			"reap what is locked": func() error {
				return e.Dialect.DropDead(t.Context(), on, append(named, lease.Lease{Key: "k", Owner: b}), 0)
			},
		}
		if e.Name != "postgres" {
			delete(calls, "reap what is locked")
		}
		for name, call := range calls {
			tickets, left := "a@1 b@2", map[string]string{"join": "a@1 b@2", "leave": "b@2"}[name]
			if left == "" {
				tickets, left = "a@1- b@2-", "b@2-"
			}
			waitsFor(t, e, "k", tickets)
			first := begun(t, e)
			do(t, first, e.SQL("UPDATE {rowlock_queue} SET note = 'other' WHERE waiter = ?"), b[:])
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			do(t, first, "COMMIT")
			if line := inLine(t, e); line != left {
				t.Errorf("%s: %q wait, want %q", name, line, left)
			}
		}
	})
}
