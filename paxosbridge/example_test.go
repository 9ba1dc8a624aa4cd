package paxosbridge_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// A client whose hot keys move to a cluster and back. Package etcd shows the same with its cluster.
func ExampleNew() {
	serve := func(ctx context.Context, db *sql.DB, cluster paxosbridge.Cluster) error {
		table, err := rowlock.OpenTable(db, postgres.New(), nil)
		if err != nil {
			return err
		}
		defer table.Close()
		bridge, err := paxosbridge.New(ctx, table, cluster, nil)
		if err != nil {
			return err
		}
		defer bridge.Close()
		locks, err := rowlock.New(bridge, nil)
		if err != nil {
			return err
		}
		defer locks.Close()
		return locks.Do(ctx, "counter/home", func(ctx context.Context, l *rowlock.Lock) error {
			for _, key := range bridge.State() {
				fmt.Println(key.Key, key.Placement, key.Rate, key.Why)
			}
			return nil
		})
	}
	_ = serve
}

// MoveOut moves a key by hand, and Pin fixes a key's placement.
func ExampleBridge_MoveOut() {
	sale := func(ctx context.Context, table rowlock.Table, cluster paxosbridge.Cluster) error {
		bridge, err := paxosbridge.New(ctx, table, cluster, &paxosbridge.Config{
			Pin: func(key string) paxosbridge.Pin {
				if key == "ledger" { // locked together with other keys, by LockAll
					return paxosbridge.Never
				}
				return paxosbridge.ByHeat
			},
		})
		if err != nil {
			return err
		}
		defer bridge.Close()
		return bridge.MoveOut(ctx, "item/1", "the sale begins at noon")
	}
	_ = sale
}
