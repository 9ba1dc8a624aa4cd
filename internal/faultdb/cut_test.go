package faultdb_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// first hits the first execution of anything.
func first(f faultdb.Fault) *faultdb.Counter {
	return faultdb.NewCounter(faultdb.OnMatch("UPDATE", faultdb.Nth(1, f)))
}

func wantFaults(t testing.TB, c *faultdb.Counter, want int64) {
	t.Helper()
	if got := c.Faults(); got != want {
		t.Errorf("%d faults were injected, want %d", got, want)
	}
}

func wantIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestEveryExecutionCanBeCut(t *testing.T) {
	faults := []struct {
		name  string
		fault faultdb.Fault
		count int
		err   error
	}{
		{"LoseReply executes once", faultdb.LoseReply(), 1, faultdb.ErrCut},
		{"FailBeforeSend executes never", faultdb.FailBeforeSend(), 0, io.ErrUnexpectedEOF},
		{"None executes once", faultdb.None, 1, nil},
	}
	onEach(t, func(t *testing.T, s server) {
		for _, f := range faults {
			for _, e := range executions {
				t.Run(f.name+"/"+e.name, func(t *testing.T) {
					b := newBed(t, s)
					inj := first(f.fault)
					wantIs(t, e.run(t.Context(), b, b.conn(inj)), f.err)
					b.wantCount(f.count)
					if f.err != nil {
						wantFaults(t, inj, 1)
					}
				})
			}
		}
	})
}

// The trap of H5: what is one statement to the caller was two to the server, and nobody was told.
func TestErrBadConnThroughThePoolExecutesAgain(t *testing.T) {
	lost := faultdb.LoseReply().Reporting(driver.ErrBadConn)
	onEach(t, func(t *testing.T, s server) {
		t.Run("lost once, executed twice, reported as a success", func(t *testing.T) {
			b := newBed(t, s)
			_, err := b.open(first(lost)).ExecContext(t.Context(), b.bump())
			wantIs(t, err, nil)
			b.wantCount(2)
		})
		t.Run("lost always, executed three times", func(t *testing.T) {
			b := newBed(t, s)
			_, err := b.open(faultdb.OnMatch("UPDATE", faultdb.Always(lost))).ExecContext(t.Context(), b.bump())
			wantIs(t, err, driver.ErrBadConn)
			b.wantCount(3)
		})
		t.Run("any other error is not retried", func(t *testing.T) {
			b := newBed(t, s)
			_, err := b.open(first(faultdb.LoseReply())).ExecContext(t.Context(), b.bump())
			wantIs(t, err, faultdb.ErrCut)
			b.wantCount(1)
		})
	})
}

// On one connection nothing is sent again. But an sql.Stmt tries to, finds that its connection is gone, and reports
// that: ErrConnDone, which reads as if nothing had been sent, for a statement that was executed.
func TestErrBadConnOnOneConnectionExecutesOnce(t *testing.T) {
	lost := faultdb.LoseReply().Reporting(driver.ErrBadConn)
	reported := map[string]error{"prepared exec": sql.ErrConnDone, "prepared query": sql.ErrConnDone}
	onEach(t, func(t *testing.T, s server) {
		for _, e := range executions {
			t.Run(e.name, func(t *testing.T) {
				b := newBed(t, s)
				inj := faultdb.NewCounter(faultdb.OnMatch("UPDATE", faultdb.Always(lost)))
				wantIs(t, e.run(t.Context(), b, b.conn(inj)), cmp.Or(reported[e.name], driver.ErrBadConn))
				b.wantCount(1)
				wantFaults(t, inj, 1)
			})
		}
	})
}

func TestACutConnectionIsDead(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, f := range []faultdb.Fault{faultdb.LoseReply(), faultdb.FailBeforeSend()} {
			b := newBed(t, s)
			var log faultdb.Log
			db := b.open(faultdb.Any(&log, first(f)))
			conn, err := db.Conn(t.Context())
			wantIs(t, err, nil)
			var inner any
			wantIs(t, conn.Raw(func(c any) error { inner = faultdb.Real(c); return nil }), nil)

			_, err = conn.ExecContext(t.Context(), b.bump())
			wantIs(t, err, faultdb.ErrCut)
			wantIs(t, conn.Raw(func(c any) error { wantDead(t, c); return nil }), nil)
			wantClosed(t, inner)
			sent := log.Count(nil)
			_, err = conn.ExecContext(t.Context(), b.bump())
			wantIs(t, err, driver.ErrBadConn)
			if got := log.Count(nil); got != sent {
				t.Errorf("%d operations were tried on a dead connection", got-sent)
			}
			_ = conn.Close()

			_, err = db.ExecContext(t.Context(), b.bump())
			wantIs(t, err, nil) // the pool has dialled another
		}
	})
}

// wantClosed asks the driver's own connection.
func wantClosed(t *testing.T, inner any) {
	t.Helper()
	if v, ok := inner.(driver.Validator); ok {
		if v.IsValid() {
			t.Error("the real connection is valid")
		}
		return
	}
	if inner.(driver.Pinger).Ping(t.Context()) == nil {
		t.Error("the real connection still answers")
	}
}

func wantDead(t *testing.T, c any) {
	t.Helper()
	v, validates := c.(driver.Validator)
	if validates && v.IsValid() {
		t.Error("a cut connection says it is valid")
	}
	r, resets := c.(driver.SessionResetter)
	if resets {
		wantIs(t, r.ResetSession(t.Context()), driver.ErrBadConn)
	}
	if !validates && !resets {
		t.Error("nothing tells the pool that the connection is dead")
	}
	wantIs(t, c.(driver.Pinger).Ping(t.Context()), driver.ErrBadConn)
}

func TestCommit(t *testing.T) {
	cases := []struct {
		name  string
		inj   func(late *faultdb.Gate) faultdb.Injector
		count int
		err   error
	}{
		{"reply lost, committed", func(*faultdb.Gate) faultdb.Injector {
			return faultdb.LoseCommitReply()
		}, 1, faultdb.ErrCut},
		{"cut before, rolled back", func(*faultdb.Gate) faultdb.Injector {
			return faultdb.CutBeforeCommit()
		}, 0, faultdb.ErrCut},
		{"not retried on ErrBadConn", func(*faultdb.Gate) faultdb.Injector {
			return faultdb.OnKind(faultdb.Always(faultdb.LoseReply().Reporting(driver.ErrBadConn)), faultdb.Commit)
		}, 1, driver.ErrBadConn},
		{"sent late", func(late *faultdb.Gate) faultdb.Injector {
			return faultdb.OnKind(faultdb.Always(faultdb.SendLate(late)), faultdb.Commit)
		}, 1, faultdb.ErrCut},
	}
	onEach(t, func(t *testing.T, s server) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				b, late := newBed(t, s), faultdb.NewGate()
				tx := begin(t, b.open(c.inj(late)))
				_, err := tx.ExecContext(t.Context(), b.bump())
				wantIs(t, err, nil)
				wantIs(t, tx.Commit(), c.err)
				late.Release()
				late.Wait()
				b.wantCount(c.count)
			})
		}
	})
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestACutInATransactionRollsItBack(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		b := newBed(t, s)
		inj := faultdb.OnMatch("UPDATE", faultdb.Nth(2, faultdb.LoseReply()))
		tx := begin(t, b.open(inj))
		// A statement left open is what would keep SQLite's transaction alive.
		stmt, err := tx.PrepareContext(t.Context(), b.bump())
		wantIs(t, err, nil)
		defer stmt.Close()
		_, err = stmt.ExecContext(t.Context())
		wantIs(t, err, nil)
		_, err = stmt.ExecContext(t.Context())
		wantIs(t, err, faultdb.ErrCut)
		wantIs(t, tx.Commit(), driver.ErrBadConn)
		b.do(b.bump()) // would wait, in vain, for a transaction left open
		b.wantCount(1)
	})
}

func TestACutUnderOpenRows(t *testing.T) {
	b := newBed(t, servers[0]) // the one whose driver allows two statements at once
	b.do("INSERT INTO " + b.table + " VALUES (2, 0), (3, 0)")
	conn := b.conn(first(faultdb.FailBeforeSend()))
	rows, err := conn.QueryContext(t.Context(), "SELECT n FROM "+b.table)
	wantIs(t, err, nil)
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	_, err = conn.ExecContext(t.Context(), b.bump())
	wantIs(t, err, faultdb.ErrCut)
	if types, err := rows.ColumnTypes(); err == nil && types[0].DatabaseTypeName() != "" {
		t.Error("a closed connection told the type of a column")
	}
	if rows.Next() {
		t.Error("a row came over a connection that was cut")
	}
	wantIs(t, rows.Err(), driver.ErrBadConn)
}

func TestConnectBeginPrepareAndPingCanBeCut(t *testing.T) {
	use := map[faultdb.Kind]func(context.Context, *bed, *sql.Conn) error{
		faultdb.Begin: func(ctx context.Context, b *bed, c *sql.Conn) error {
			_, err := c.BeginTx(ctx, nil)
			return err
		},
		faultdb.Prepare: func(ctx context.Context, b *bed, c *sql.Conn) error {
			_, err := c.PrepareContext(ctx, b.bump())
			return err
		},
		faultdb.Ping: func(ctx context.Context, b *bed, c *sql.Conn) error { return c.PingContext(ctx) },
		faultdb.Rollback: func(ctx context.Context, b *bed, c *sql.Conn) error {
			tx, err := c.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
	}
	faults := map[string]faultdb.Fault{"before": faultdb.FailBeforeSend(), "after": faultdb.LoseReply()}
	onEach(t, func(t *testing.T, s server) {
		for when, f := range faults {
			for kind, run := range use {
				t.Run(kind.String()+" "+when, func(t *testing.T) {
					b := newBed(t, s)
					conn := b.conn(faultdb.OnKind(faultdb.Always(f), kind))
					wantIs(t, run(t.Context(), b, conn), faultdb.ErrCut)
					b.do(b.bump())
				})
			}
			t.Run("connect "+when, func(t *testing.T) {
				b := newBed(t, s)
				db := b.open(faultdb.OnKind(faultdb.Nth(1, f), faultdb.Connect))
				wantIs(t, db.PingContext(t.Context()), faultdb.ErrCut)
				wantIs(t, db.PingContext(t.Context()), nil)
			})
		}
	})
}
