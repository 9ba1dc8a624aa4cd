//go:build linux

package fight

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/schema"
)

// forgetful are goroutines that write without a fence of the key, which protected tables refuse.
func forgetful() Crew {
	return Crew{Name: "forgetful", Goroutines: 3, Acts: []Weight{{"forget", 1}}, Keys: Keys("mixed/", 5)}
}

// protects reports whether the database can have a table refuse what is not fenced.
func (d Database) protects() bool { return d.Name == "postgres" }

// Protect has the data refuse writers that have not fenced the key of a row.
func (d Database) Protect(ctx context.Context, db *sql.DB) error {
	if !d.protects() {
		return nil
	}
	for _, table := range []string{"counter", "journal"} {
		err := schema.Protect(ctx, db, d.Dialect(), schema.Protection{Table: d.SQL("{}" + table), Key: "{k}"})
		if err != nil {
			return err
		}
	}
	return nil
}

// unprotect removes what Protect has made.
func (d Database) unprotect(ctx context.Context, db *sql.DB) error {
	if !d.protects() {
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

func init() {
	// forget writes in a transaction that has not fenced the key: without a lock, under it, under
	// another, after a fenced transaction of the same session, or under a shared lock. Whatever it is
	// told, its write must not be there.
	acts["forget"] = func(ctx context.Context, h *hand) {
		key := h.key()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := h.db.Conn(ctx)
		if err != nil {
			return
		}
		defer conn.Close()
		got := &held{serial: h.serial.Add(1)}
		w := writing{hand: h, got: got, op: fmt.Sprintf("%s-%d", h.name, h.serial.Add(1))}
		sent := Now()
		err = w.forget(ctx, conn, key, h.rng.IntN(5))
		e := h.event(history.Write, got, sent, err)
		e.Key, e.Op, e.Value, e.Result = key, w.op, w.value, history.Refused
		h.record.Add(e)
		Sleep(ctx, h.upTo(patience/40))
	}
}

// forget is one transaction that leaves out the fence, in one of five ways.
func (w *writing) forget(ctx context.Context, conn *sql.Conn, key string, way int) error {
	locked := key
	if way == 2 {
		locked = w.keys[w.rng.IntN(len(w.keys))]
	}
	var fence func(tx *sql.Tx) error
	if way > 0 && (way < 4 || w.bridge == nil) { // whose keys cannot be shared
		take := w.client.Lock
		if way == 4 {
			take = w.client.RLock
		}
		l, err := take(ctx, locked)
		if err != nil {
			return err
		}
		defer func() { _ = l.Unlock(context.WithoutCancel(ctx)) }()
		fence = func(tx *sql.Tx) error { return l.Fence(ctx, tx) }
	}
	if way == 3 {
		if err := transact(ctx, conn, fence); err != nil {
			return err
		}
	}
	return transact(ctx, conn, func(tx *sql.Tx) error {
		if way == 2 && locked != key || way == 4 && fence != nil {
			if err := fence(tx); err != nil {
				return err
			}
		}
		return w.write(ctx, tx, key, 0)
	})
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
