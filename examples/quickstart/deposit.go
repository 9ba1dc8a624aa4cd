package main

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock"
)

// deposit adds to the balance, under a lock on the account.
func (w *worker) deposit(ctx context.Context) (balance int64, err error) {
	l, err := w.locks.Lock(ctx, "account/7", rowlock.TTL(w.TTL))
	if err != nil {
		return 0, err
	}
	defer func() {
		// Another error only delays others a little: the client goes on giving the lock back.
		if unlock := l.Unlock(ctx); err == nil && errors.Is(unlock, rowlock.ErrLost) {
			err = unlock
		}
	}()

	balance, err = w.db.read(ctx, "balance")
	if err != nil {
		return 0, err
	}
	balance += w.Deposit
	if err := w.pause(l, balance); err != nil { // here a process may be stopped, and not know it
		return 0, err
	}
	if w.Fenced {
		return balance, w.db.writeFenced(ctx, l, "balance", balance)
	}
	return balance, w.db.write(ctx, "balance", balance)
}

// deposits starts again from the beginning, with a new lock and a new look at the balance, when the
// fence refuses.
func (w *worker) deposits(ctx context.Context) error {
	for {
		w.tell(message{Event: "locks"})
		balance, err := w.deposit(ctx)
		switch {
		case err == nil:
			w.tell(message{Event: "wrote", Value: balance})
			return nil
		case errors.Is(err, rowlock.ErrFenced):
			w.tell(message{Event: "refused", Value: balance, Error: err.Error()})
		case errors.Is(err, rowlock.ErrLost): // written all the same: we only learn of it afterwards
			w.tell(message{Event: "wrote", Value: balance, Error: err.Error()})
			return nil
		default:
			return err
		}
	}
}

// pause tells the parent that everything is ready to be written, and that the lock has just been
// checked; then it waits for the parent's word. A process stopped here continues as if no time had
// passed.
func (w *worker) pause(l *rowlock.Lock, balance int64) error {
	w.tell(message{Event: "read", Token: l.Token(), Value: balance - w.Deposit, Held: l.Context().Err() == nil})
	return w.await("write")
}
