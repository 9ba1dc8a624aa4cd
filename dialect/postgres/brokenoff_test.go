package postgres_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

func serverError(severity, code string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: code, Message: "no"}
}

// Every end but ReadyForQuery without an error before it leaves all rows untold: the commit is at
// the Sync. What may have been committed is unknown, and the connection is not used again.
func TestNoRowIsToldUnlessItsCommitWasAcknowledged(t *testing.T) {
	type messages = []pgproto3.BackendMessage
	for name, one := range map[string]struct {
		reply func(all messages) messages // then the connection ends
		class sqlstore.Class
	}{
		"it ends before ReadyForQuery": {
			func(all messages) messages { return all[:len(all)-1] }, sqlstore.Unknown,
		},
		"it ends before the last CommandComplete": {
			func(all messages) messages { return all[:len(all)-2] }, sqlstore.Unknown,
		},
		"the commit fails": {
			func(all messages) messages {
				return append(all[:len(all)-1:len(all)-1], serverError("ERROR", "40001"), all[len(all)-1])
			}, sqlstore.Conflict,
		},
		"the server shuts down after the commit": {
			func(all messages) messages { return append(all[:len(all)-1:len(all)-1], serverError("FATAL", "57P01")) },
			sqlstore.Unknown,
		},
		"the last statement fails": {
			func(all messages) messages {
				return append(all[:len(all)-3:len(all)-3], serverError("ERROR", "55P03"), all[len(all)-1])
			}, sqlstore.Conflict,
		},
		"an answer is missing": {
			func(all messages) messages { return all[len(all)-1:] }, sqlstore.Unknown,
		},
	} {
		for size, queries := range map[string][]string{"one": {"token 1"}, "many": {"token 1", "nothing", "token 2"}} {
			t.Run(name+", of "+size, func(t *testing.T) {
				f := startFake(t)
				f.reply = func(c net.Conn, all messages) bool {
					sendAll(c, one.reply(all))
					return false
				}
				s := f.session(t)
				got, err := pipe(t.Context(), s, queries...)
				if v := sqlstore.Judge(sqlstore.Of(postgres.New()), err); err == nil || v.Class != one.class {
					t.Errorf("%v is %s, want %s", err, v.Class, one.class)
				}
				if len(got) > 0 {
					t.Errorf("%v were told", got)
				}
				if got, err := pipe(t.Context(), s, "token 3"); err == nil {
					t.Errorf("the connection returned %v", got)
				}
			})
		}
	}
}

// A deadline that passes while the answer is half read ends the connection: its rest would be the
// answer to what is sent next.
func TestAHalfReadAnswerIsNeverTheNextStatements(t *testing.T) {
	f := startFake(t)
	callers := make(chan context.CancelFunc, 1)
	f.reply = func(c net.Conn, answers []pgproto3.BackendMessage) bool {
		all, half := encoded(answers), 0
		select {
		case leaves := <-callers:
			half = len(all) / 2
			_, _ = c.Write(all[:half])
			leaves()
		default:
		}
		_, err := c.Write(all[half:])
		return err == nil
	}
	for range 25 {
		s := f.session(t)
		ctx, leave := context.WithCancel(t.Context())
		callers <- leave
		s.Bind(ctx, time.Now().Add(time.Minute))
		got, err := pipe(context.Background(), s, "token 1", "token 2")
		err = s.Ended(err)
		s.Unbind()
		if err == nil { // the rest came before the end of ctx, which must not end what comes next
			if got, err := pipe(t.Context(), s, "token 3"); err != nil || len(got) != 1 {
				t.Fatalf("the next statement returned %v, %v", got, err)
			}
			continue
		}
		if len(got) > 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := pipe(t.Context(), s, "token 3"); err == nil {
			t.Fatalf("the next statement returned %v", got)
		}
	}
}

// Rows belong to the statement that returned them, also behind one that returned none.
func TestEachStatementOfAPipelineGetsItsOwnRows(t *testing.T) {
	s := startFake(t).session(t)
	for range 3 {
		got, err := pipe(t.Context(), s, "nothing 1", "token 7", "nothing 2", "nothing 3", "token 8", "nothing 4")
		want := map[string]int64{"token 7": 7, "token 8": 8}
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v, %v", got, err)
		}
	}
}

// A context that has ended before anything was sent says nothing of the connection.
func TestWhatWasNotSentDoesNotEndTheSession(t *testing.T) {
	s := startFake(t).session(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pipe(gone, s, "token 1", "token 2"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got, err := pipe(t.Context(), s, "token 3"); err != nil || got["token 3"] != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

// A session that must not grant any more sends nothing of a pipeline, also if that has come while
// the last of its statements was prepared.
func TestAPipelineAsksWhetherItMayGrant(t *testing.T) {
	f := startFake(t)
	s := f.session(t)
	passed := errors.New("an era has begun")
	asked := 0
	s.GrantIn(5, "5", func(lease.Token) error {
		if asked++; asked > 1 {
			return passed
		}
		return nil
	})
	f.reply = func(net.Conn, []pgproto3.BackendMessage) bool {
		t.Error("it was sent")
		return false
	}
	for range 2 {
		_, err := pipe(t.Context(), s, "token @era", "nothing")
		if !errors.Is(err, passed) || !errors.As(err, new(conn.NotSent)) {
			t.Error(err)
		}
	}
}

// Behind a pooler that nothing has found, a session meets what another has prepared: under its name
// there must be no other statement.
func TestSessionsNameNoTwoStatementsAlike(t *testing.T) {
	f := startFake(t)
	if _, err := pipe(t.Context(), f.session(t), "token 1", "token 2", "nothing"); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe(t.Context(), f.session(t), "nothing", "token 2", "token 1"); err != nil {
		t.Fatal(err)
	}
	if f.mixed.Load() {
		t.Error("a name is that of two statements")
	}
}

// A transaction that was begun and forgotten takes the statements in: they are answered as ever,
// and nothing commits them.
func TestNoRowIsToldWhileATransactionIsOpen(t *testing.T) {
	for name, status := range map[string]byte{"open": 'T', "failed": 'E'} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.reply = func(c net.Conn, all []pgproto3.BackendMessage) bool {
				last := &pgproto3.ReadyForQuery{TxStatus: status}
				return sendAll(c, append(all[:len(all)-1:len(all)-1], last))
			}
			s := f.session(t)
			for range 2 { // also what comes next, which would be in the same transaction
				if got, err := pipe(t.Context(), s, "token 1", "token 2"); err == nil || len(got) > 0 {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
}

// A row that cannot be read is one that was committed.
func TestAnUnreadableRowLeavesTheOutcomeUnknown(t *testing.T) {
	s := startFake(t).session(t)
	err := s.Pipe(t.Context(), 2,
		func(i int) (string, []conn.Arg) { return []string{"token 1", "token 2"}[i], nil },
		func(int, conn.Columns) error { return lease.ErrCorrupt })
	if v := sqlstore.Judge(sqlstore.Of(postgres.New()), err); v.Class != sqlstore.Unknown {
		t.Errorf("%v is %s", err, v.Class)
	}
}

// A statement that sets synchronous_commit sets it for all that has the same commit.
func TestWhatNeedNotBeDurableSharesItsCommitWithItsKindAlone(t *testing.T) {
	const relaxed = "nothing, with set_config('synchronous_commit', 'off', true)"
	for name, one := range map[string]struct {
		queries []string
		sent    bool
	}{
		"alone":                  {[]string{relaxed}, true},
		"its kind":               {[]string{relaxed, relaxed + " again"}, true},
		"others":                 {[]string{"token 1", "nothing"}, true},
		"before another":         {[]string{relaxed, "token 1"}, false},
		"behind another":         {[]string{"token 1", "nothing", relaxed}, false},
		"one that grants itself": {[]string{relaxed, relaxed + " and @era"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			s := f.session(t)
			s.EraAt(5)
			var syncs atomic.Int64
			f.reply = func(c net.Conn, all []pgproto3.BackendMessage) bool {
				syncs.Add(1)
				return sendAll(c, all)
			}
			_, err := pipe(t.Context(), s, one.queries...)
			if sent := syncs.Load() > 0; sent != one.sent || sent != (err == nil) {
				t.Errorf("sent: %t, %v", sent, err)
			}
			if err != nil && !errors.As(err, new(conn.NotSent)) {
				t.Errorf("%v does not say that nothing was sent", err)
			}
			if got, err := pipe(t.Context(), s, "token 7"); err != nil || got["token 7"] != 7 {
				t.Errorf("the next statement returned %v, %v", got, err)
			}
		})
	}
}
