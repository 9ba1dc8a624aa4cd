//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// MovingPrefix is of the keys that a bridge moves. The others stay in the table, because Fair,
// LockAll and UnlockTx need that.
const MovingPrefix = "moving/"

// closers are closed in reverse.
type closers []func() error

func (c *closers) later(one io.Closer) { *c = append(*c, one.Close) }

func (c closers) close() (err error) {
	for i := len(c) - 1; i >= 0; i-- {
		err = errors.Join(err, c[i]())
	}
	return err
}

// open opens the pool and the worker's two clients.
func (w *worker) open() (open closers, err error) {
	// Four processes within the 100 of PostgreSQL, and those of the killed beside them.
	connections := 16
	if w.Database.Name == "postgres" {
		connections -= pgxConnections
	}
	if w.db, err = w.Database.Open(connections); err != nil {
		return open, err
	}
	open.later(w.db)
	if err := w.openPgx(&open); err != nil {
		return open, err
	}
	fair := w.config()
	fair.Fair, fair.Reaper.Off = true, true
	var store lease.Store
	if w.Etcd != "" || len(w.Group) > 0 {
		if store, err = w.join(&open); err != nil {
			return open, err
		}
	}
	for _, c := range []struct {
		to  **rowlock.Client
		cfg *rowlock.Config
	}{{&w.plain, w.config()}, {&w.fair, fair}} {
		if c.cfg.Fair && store != nil {
			continue
		}
		if *c.to, err = w.client(store, c.cfg); err != nil {
			return open, err
		}
		client := *c.to
		open = append(open, func() error { return w.end(client) })
	}
	if err := w.openSessions(&open); err != nil {
		return open, err
	}
	return open, w.openFamily(&open)
}

// openTries is how often a worker tries to open its clients while the database may be away, or the
// session in which it looks at the tables be ended, every half second.
const openTries = 120

// enter opens what the worker needs.
func (w *worker) enter() (open closers, err error) {
	for n := 0; ; n++ {
		open, err = w.open()
		if err == nil || !w.Plan.Rough && w.Life == 0 || n == openTries {
			return open, err
		}
		_ = open.close()
		Sleep(context.Background(), 500*time.Millisecond)
	}
}

func (w *worker) client(store lease.Store, cfg *rowlock.Config) (*rowlock.Client, error) {
	if store != nil {
		return rowlock.New(store, cfg)
	}
	return rowlock.Open(w.db, w.Database.Dialect(), cfg)
}

// join puts a bridge to a cluster before the table. Keys move by hand alone.
func (w *worker) join(open *closers) (lease.Store, error) {
	table, err := rowlock.OpenTable(w.db, w.Database.Dialect(), w.config())
	if err != nil {
		return nil, err
	}
	open.later(table)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cluster, err := w.cluster(ctx, open)
	if err != nil {
		return nil, err
	}
	w.bridge, err = paxosbridge.New(ctx, table, cluster, &paxosbridge.Config{Every: -1, Logger: slog.New(slog.DiscardHandler), Pin: pin})
	if err != nil {
		return nil, err
	}
	open.later(w.bridge)
	return w.bridge, nil
}

func (w *worker) cluster(ctx context.Context, open *closers) (paxosbridge.Cluster, error) {
	if len(w.Group) > 0 {
		return w.group(ctx, open)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(w.Etcd, ","), DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	open.later(client)
	cluster, err := etcd.New(ctx, client, etcd.Prefix(w.Database.Prefix))
	if err == nil {
		open.later(cluster)
	}
	return cluster, err
}

func (w *worker) group(ctx context.Context, open *closers) (paxosbridge.Cluster, error) {
	members, err := Members(w.Group)
	for _, db := range members {
		open.later(db)
	}
	if err != nil {
		return nil, err
	}
	cluster, err := groupreplication.New(ctx, members, groupreplication.Tables(dialect.Prefix(w.Database.Prefix)))
	if err == nil {
		open.later(cluster)
	}
	return cluster, err
}

// Members are pools for a group's members.
func Members(sources []string) (list []*sql.DB, err error) {
	for _, source := range sources {
		db, err := sql.Open("mysql", source)
		if err != nil {
			return list, err
		}
		list = append(list, db)
	}
	return list, nil
}

func pin(key string) paxosbridge.Pin {
	if strings.HasPrefix(key, MovingPrefix) {
		return paxosbridge.ByHeat
	}
	return paxosbridge.Never
}

// end closes a client. What it says is recorded, and no reason for the process to fail.
func (w *worker) end(c *rowlock.Client) error {
	sent := Now()
	err := c.Close()
	w.record.Add(history.Event{
		Kind: history.Close, Process: w.name, Sent: sent, Told: Now(), Result: result(err), Err: text(err),
		Phase: len(w.Plan.Phases) - 1, Limit: 10 * time.Second,
	})
	return nil
}
