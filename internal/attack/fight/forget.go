//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/schema"
)

// forgetful are goroutines that write without a fence of the key, which protected tables refuse.
func forgetful() Crew {
	return Crew{Name: "forgetful", Goroutines: 3, Acts: []Weight{{"forget", 1}}, Keys: Keys("mixed/", 5)}
}

// protects reports whether the data refuse what is not fenced. Triggers of MySQL and MariaDB refuse
// what is written under a key that has moved, too, which a bridge's crews do all the time.
func (s settings) protects() bool {
	return s.db == "postgres" || s.db == "pgbouncer" || (s.db == "mysql" || s.db == "mariadb") && !s.bridge
}

// marks reports whether a fence is known by the mark that it leaves, which outlives a COMMIT
// without UnlockTx: refused are then writes in sessions that have no such COMMIT.
func (d Database) marks() bool { return d.Protected && (d.Name == "mysql" || d.Name == "mariadb") }

// protect has the data refuse writers that have not fenced the key of a row, from now on.
func (d *Database) protect(ctx context.Context, db *sql.DB) error {
	d.Protected = true
	for _, table := range []string{"counter", "journal"} {
		name := strings.ReplaceAll(d.SQL("{}"+table), "`", "")
		if err := schema.Protect(ctx, db, d.Dialect(), schema.Protection{Table: name, Key: "{k}"}); err != nil {
			return err
		}
	}
	return nil
}

// unprotect removes what protect has made.
func (d Database) unprotect(ctx context.Context, db *sql.DB) error {
	if d.Name == "sqlite" {
		return nil
	}
	all, err := schema.Protected(ctx, db, d.Dialect())
	for _, t := range all {
		if err == nil {
			err = schema.Unprotect(ctx, db, d.Dialect(), t.Table)
		}
	}
	return err
}

// openSessions opens what the forgetful write with. Where a fence leaves a mark it is a pool of
// their own, in whose sessions DoTx and UnlockTx end every fence.
func (w *worker) openSessions(open *closers) (err error) {
	w.sessions, w.sections = w.db, w.plain
	if !w.Database.marks() {
		return nil
	}
	const connections = 8 // of which the client keeps three at most
	if w.sessions, err = w.Database.Open(connections); err != nil {
		return err
	}
	open.later(w.sessions)
	if w.sections, err = rowlock.Open(w.sessions, w.Database.Dialect(), w.config()); err == nil {
		client := w.sections
		*open = append(*open, func() error { return w.end(client) })
	}
	return err
}

// lapse is a way to leave out the fence.
type lapse int

const (
	withoutLock  lapse = iota
	withoutFence       // under the lock
	ofAnother          // the fence is another key's
	before             // the fence was in the transaction before, of the same session
	inSection          // the same, by DoTx of the lock, which is still held
	shared             // the fence is a reader's
	afterUnlock        // nothing is written after UnlockTx where a fence leaves a mark
	lapses
)

func init() {
	// forget writes in a transaction that has not fenced the key. Whatever it is told, its write must
	// not be there.
	acts["forget"] = func(ctx context.Context, h *hand) {
		key := h.key()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got := &held{serial: h.serial.Add(1)}
		w := writing{hand: h, got: got, op: fmt.Sprintf("%s-%d", h.name, h.serial.Add(1))}
		sent := Now()
		err := w.forget(ctx, key, lapse(h.rng.IntN(int(lapses))))
		e := h.event(history.Write, got, sent, err)
		e.Key, e.Op, e.Value, e.Result = key, w.op, w.value, refusal(err)
		h.record.Add(e)
		Sleep(ctx, h.upTo(patience/40))
	}
}

// refusal tells what a protected table has refused from what was rolled back otherwise.
func refusal(err error) history.Result {
	if err != nil && strings.Contains(err.Error(), "P0RLF") {
		return history.Unfenced
	}
	return history.Refused
}

// forget is one transaction that leaves out the fence.
func (w *writing) forget(ctx context.Context, key string, way lapse) error {
	if way == shared && w.bridge != nil || way == afterUnlock && !w.Database.marks() {
		way = withoutLock // a bridge's keys cannot be shared
	}
	if way == withoutLock {
		return w.unfenced(ctx, key, nil)
	}
	locked, take := key, w.sections.Lock
	switch way {
	case ofAnother:
		locked = w.keys[w.rng.IntN(len(w.keys))]
	case shared:
		take = w.sections.RLock
	}
	l, err := take(ctx, locked)
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock(context.WithoutCancel(ctx)) }()
	switch {
	case way == before:
		return w.fenceBefore(ctx, l)
	case way == inSection:
		err = l.DoTx(ctx, func(context.Context, *sql.Tx) error { return nil })
	case way == afterUnlock:
		return w.unfenced(ctx, key, func(tx *sql.Tx) error { return leave(ctx, l, tx) })
	case way == ofAnother && locked != key, way == shared:
		return w.unfenced(ctx, key, func(tx *sql.Tx) error { return l.Fence(ctx, tx) })
	}
	if err != nil {
		return err
	}
	return w.unfenced(ctx, key, nil)
}

// fenceBefore writes in the transaction after a fenced one. A mark is still there then, of a lock
// that was left; it must not pass under the next lock of the key.
func (w *writing) fenceBefore(ctx context.Context, l *rowlock.Lock) error {
	conn, err := w.sessions.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = transact(ctx, conn, func(tx *sql.Tx) error {
		if w.Database.marks() {
			return leave(ctx, l, tx)
		}
		return l.Fence(ctx, tx)
	})
	if err == nil && w.Database.marks() {
		var again *rowlock.Lock
		if again, err = w.sections.Lock(ctx, l.Key()); err == nil {
			defer func() { _ = again.Unlock(context.WithoutCancel(ctx)) }()
		}
	}
	if err != nil {
		return err
	}
	return transact(ctx, conn, func(tx *sql.Tx) error { return w.write(ctx, sqlTx{tx}, l.Key(), 0) })
}

// leave fences a lock and leaves it.
func leave(ctx context.Context, l *rowlock.Lock, tx *sql.Tx) error {
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	return l.UnlockTx(ctx, tx)
}

// unfenced writes after something that is no fence of key.
func (w *writing) unfenced(ctx context.Context, key string, first func(tx *sql.Tx) error) error {
	conn, err := w.sessions.Conn(ctx)
	if err != nil {
		return err
	}
	err = transact(ctx, conn, func(tx *sql.Tx) error {
		if first != nil {
			if err := first(tx); err != nil {
				return err
			}
		}
		return w.write(ctx, sqlTx{tx}, key, 0)
	})
	return errors.Join(err, conn.Close())
}

func transact(ctx context.Context, conn *sql.Conn, f func(tx *sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
