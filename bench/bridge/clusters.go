package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
	"github.com/rowlockdb/rowlock/schema"
)

// closable is a cluster that is made for one process.
type closable interface {
	paxosbridge.Cluster
	io.Closer
}

// joiner makes one.
type joiner func() (closable, error)

// clusters are those that a hot key can be in. Where there is none, join returns none.
var clusters = []struct {
	name string
	join func(ctx context.Context, d *rig.Database, open *closers) (joiner, error)
}{
	{"etcd, 3 members", joinEtcd},
	{"a group, 3 members", joinGroup},
}

// prefix is of this run alone.
func prefix(d *rig.Database) string {
	return fmt.Sprintf("b%d_%s_", time.Now().UnixNano()%1e12, d.Name)
}

func joinEtcd(ctx context.Context, d *rig.Database, open *closers) (joiner, error) {
	endpoints := os.Getenv("ROWLOCK_TEST_ETCD")
	if endpoints == "" {
		return nil, nil
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoints, ","), DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	open.later(client)
	at := etcd.Prefix(prefix(d))
	return func() (closable, error) { return etcd.New(ctx, client, at) }, nil
}

func joinGroup(ctx context.Context, d *rig.Database, open *closers) (joiner, error) {
	var members []*sql.DB
	for _, dsn := range strings.Fields(os.Getenv("ROWLOCK_TEST_GROUP")) {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			return nil, err
		}
		open.later(db)
		members = append(members, db)
	}
	if len(members) == 0 {
		return nil, nil
	}
	primary, err := groupreplication.Primary(ctx, members)
	if err != nil {
		return nil, err
	}
	tables := dialect.Prefix(prefix(d))
	if err := schema.Migrate(ctx, primary, mysql.New(tables)); err != nil {
		return nil, err
	}
	open.later(dropping{primary, mysql.New(tables)})
	return func() (closable, error) { return groupreplication.New(ctx, members, groupreplication.Tables(tables)) }, nil
}

// dropping drops tables when it is closed.
type dropping struct {
	db *sql.DB
	d  dialect.Dialect
}

func (t dropping) Close() error { return schema.Uninstall(context.Background(), t.db, t.d) }
