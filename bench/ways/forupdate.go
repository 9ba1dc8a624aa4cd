package main

import (
	"context"
	"errors"
	"io"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/lease"
)

// openForUpdate: the floor begins a transaction and locks a row, which takes a connection for as
// long as the lock is held; writes owner and token where they last, which takes another; takes the
// owner back, and ends the transaction.
func openForUpdate(ctx context.Context, d *rig.Database, goroutines int) (*field, error) {
	f := new(field)
	holders, err := f.hands(ctx, d, goroutines, nil, map[string]string{
		"lock": d.SQL(`SELECT 1 FROM {rowlock_hold} WHERE {key} = ? FOR UPDATE SKIP LOCKED`),
	})
	if err != nil {
		f.close()
		return nil, err
	}
	writers, err := f.hands(ctx, d, min(goroutines, connections), map[string]string{
		"take":  d.SQL(`UPDATE {rowlock} SET owner = ?, token = token + 1, expires_at = {now} + {micros} WHERE {key} = ? AND (owner IS NULL OR expires_at <= {now})`),
		"clear": d.SQL(`UPDATE {rowlock} SET owner = NULL WHERE {key} = ? AND owner = ?`),
	}, nil)
	if err != nil {
		f.close()
		return nil, err
	}
	f.contenders = []race.Contender{{Name: "forupdate, " + floorName(5), Series: 'u', Pair: func(_ context.Context, key string) error {
		k, owner := []byte(key), lease.NewOwner()
		return holders.use(func(h *rig.Hand) error {
			err := h.Say("BEGIN")
			if err == nil {
				_, err = h.Read("lock", k)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err = writers.use(func(h *rig.Hand) error { return h.Write("take", owner[:], ttl, k) }); err == nil {
				err = writers.use(func(h *rig.Hand) error { return h.Write("clear", k, owner[:]) })
			}
			return errors.Join(err, h.Say("ROLLBACK"))
		})
	}}}
	store, err := forupdate.New(d.Pool, d.Dialect)
	if err == nil {
		f.closers = append(f.closers, func() { _ = store.Close() })
		err = f.lockers("forupdate.New", 'u', store)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
