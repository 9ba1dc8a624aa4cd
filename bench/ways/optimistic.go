package main

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

const connections = 4

// openOptimistic: the floor reads the row, changes it if it is still as read, and makes it free.
func openOptimistic(ctx context.Context, d *rig.Database, goroutines int) (*field, error) {
	f := new(field)
	all, err := f.hands(ctx, d, min(goroutines, d.Connections(connections)), map[string]string{
		"swap":  d.SQL(`UPDATE {rowlock} SET owner = ?, token = ?, expires_at = {now} + {micros} WHERE {key} = ? AND token = ? AND owner IS NULL`),
		"clear": d.SQL(`UPDATE {rowlock} SET owner = NULL WHERE {key} = ? AND owner = ?`),
	}, map[string]string{
		"look": d.SQL(`SELECT token FROM {rowlock} WHERE {key} = ? AND (owner IS NULL OR expires_at <= {now})`),
	})
	if err != nil {
		f.close()
		return nil, err
	}
	f.contenders = []race.Contender{{Name: "optimistic, " + floorName(3), Series: 'o', Pair: func(_ context.Context, key string) error {
		k, owner := []byte(key), lease.NewOwner()
		err := all.use(func(h *rig.Hand) error {
			row, err := h.Read("look", k)
			if err != nil {
				return fmt.Errorf("look at %q: %w", key, err)
			}
			token := row[0].(int64)
			return h.Write("swap", owner[:], token+1, ttl, k, token)
		})
		if err != nil {
			return err
		}
		return all.use(func(h *rig.Hand) error { return h.Write("clear", k, owner[:]) })
	}}}
	store, err := optimistic.New(d.Pool, d.Dialect)
	if err == nil {
		f.closers = append(f.closers, func() { _ = store.Close() })
		err = f.lockers("optimistic.New", 'o', store)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
