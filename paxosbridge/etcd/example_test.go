package etcd_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// A cluster is also a store of its own: locks without a database. They have no Fence, because the
// data are elsewhere.
func ExampleNew() {
	lockIt := func(ctx context.Context) error {
		client, err := clientv3.New(clientv3.Config{
			Endpoints:   []string{"10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"},
			DialTimeout: 5 * time.Second,
			// Without these, each call finds out for itself that a member has vanished.
			DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		})
		if err != nil {
			return err
		}
		defer client.Close()
		cluster, err := etcd.New(ctx, client, etcd.Prefix("billing/locks/"))
		if err != nil {
			return err
		}
		defer cluster.Close()

		locks, err := rowlock.New(cluster, nil)
		if err != nil {
			return err
		}
		defer locks.Close()
		return locks.Do(ctx, "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
			fmt.Println("held with token", l.Token())
			return nil
		})
	}
	_ = lockIt
}

// A client whose hot keys move to etcd and back.
func Example_bridge() {
	serve := func(ctx context.Context, db *sql.DB, client *clientv3.Client) error {
		table, err := rowlock.OpenTable(db, postgres.New(), nil)
		if err != nil {
			return err
		}
		defer table.Close()
		cluster, err := etcd.New(ctx, client)
		if err != nil {
			return err
		}
		defer cluster.Close()
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
