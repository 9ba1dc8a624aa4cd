//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// txFor bounds a transaction, apart from what it dwells.
const txFor = 5 * time.Second

// count adds one to a key's counter in a fenced transaction, and writes down that it did. It writes
// the value that it has read, plus one: an increment in SQL would hide another holder.
func (h *hand) count(got *held, leave bool) {
	if got == nil {
		return
	}
	l := got.locks[0]
	w := writing{hand: h, lock: l, got: got, leave: leave, op: fmt.Sprintf("%s-%d", h.name, h.serial.Add(1))}
	if leave { // either checks the lock, and one of them must come first
		w.first = h.rng.IntN(2) == 0 && !h.Database.marks() // whose triggers refuse what follows UnlockTx
	}
	sent := Now()
	err := w.run()
	e := h.event(history.Write, got, sent, err)
	e.Key, e.Token, e.Op, e.Value = l.Key(), l.Token(), w.op, w.value
	switch {
	case err == nil:
	case w.committing:
		e.Result = history.Unknown
	case e.Result != history.Lost:
		e.Result = refusal(err)
	}
	h.record.Add(e)
}

// writing is one transaction.
type writing struct {
	*hand
	lock       *rowlock.Lock
	got        *held
	leave      bool
	first      bool // UnlockTx stands in for Fence
	op         string
	value      int64
	committing bool
}

func (w *writing) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), txFor+w.got.dwell)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := w.body(ctx, tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	w.committing = true
	return tx.Commit()
}

func (w *writing) body(ctx context.Context, tx *sql.Tx) error {
	if err := w.enter(ctx, tx); err != nil {
		return err
	}
	if err := w.write(ctx, sqlTx{tx}, w.lock.Key(), w.lock.Token()); err != nil || !w.leave || w.first {
		return err
	}
	return w.unlock(ctx, tx)
}

// write counts in a transaction that has checked the lock.
func (w *writing) write(ctx context.Context, tx inTx, key string, token rowlock.Token) error {
	d := w.Database
	if err := tx.read(ctx, &w.value, d.SQL(`SELECT n FROM {}counter WHERE k = ?`), key); err != nil {
		return err
	}
	w.value++
	Sleep(ctx, w.got.dwell)
	if err := tx.exec(ctx, d.SQL(`UPDATE {}counter SET n = ? WHERE k = ?`), w.value, key); err != nil {
		return err
	}
	return tx.exec(ctx, d.SQL(`INSERT INTO {}journal (op, k, v, token, process, holder) VALUES (?, ?, ?, ?, ?, ?)`),
		w.op, key, w.value, int64(token), w.name, w.got.serial)
}

// enter makes sure that the lock is held until the transaction ends.
func (w *writing) enter(ctx context.Context, tx *sql.Tx) error {
	if w.first {
		return w.unlock(ctx, tx)
	}
	return w.lock.Fence(ctx, tx)
}

func (w *writing) unlock(ctx context.Context, tx *sql.Tx) error {
	err := w.lock.UnlockTx(ctx, tx)
	w.got.left = w.got.left || err == nil
	return err
}

// rollback of a transaction that its ctx has ended already is no error.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// move asks the bridge.
func (h *hand) move(ctx context.Context, key string, out bool) {
	got := new(held)
	sent := Now()
	call := h.bridge.MoveBack
	if out {
		call = h.bridge.MoveOut
	}
	err := call(ctx, key, "attack")
	e := h.event(history.Move, got, sent, err)
	e.Key = key
	if err != nil {
		e.Result = history.Refused // it stayed, or the next caller finishes it
	}
	h.record.Add(e)
}
