package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// app is an application with a bridge, in this process.
type app struct {
	*bed
	endpoints, prefix string
	etcd              *clientv3.Client
	table             rowlock.Table
	cluster           *etcd.Cluster
	bridge            *paxosbridge.Bridge
	locks             *rowlock.Client
	completed         atomic.Int64 // moves that a killed command has left
}

// app skips the test aloud without etcd.
func (b *bed) app() *app {
	b.Helper()
	a := &app{bed: b, endpoints: os.Getenv("ROWLOCK_TEST_ETCD")}
	if a.endpoints == "" {
		if slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), "etcd") {
			b.Fatal("etcd is required by ROWLOCK_TEST_REQUIRE and ROWLOCK_TEST_ETCD is not set")
		}
		b.Skip("SKIPPED, NOT TESTED ON ETCD: set ROWLOCK_TEST_ETCD, or run make test")
	}
	a.prefix = fmt.Sprintf("test %d %d/", os.Getpid(), time.Now().UnixNano())
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(a.endpoints, ","), DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	a.done(err)
	a.etcd = client
	b.Cleanup(func() {
		_, err := client.Delete(context.Background(), a.prefix, clientv3.WithPrefix())
		a.done(err)
		_ = client.Close()
	})
	a.open()
	return a
}

func (a *app) open() {
	a.Helper()
	table, err := rowlock.OpenTable(a.Pool(a.T), a.Dialect, nil)
	a.done(err)
	cluster, err := etcd.New(a.Context(), a.etcd, etcd.Prefix(a.prefix))
	a.done(err)
	a.table, a.cluster = table, cluster
	bridge, err := paxosbridge.New(a.Context(), table, cluster, &paxosbridge.Config{
		Every: -1, Logger: slog.New(slog.DiscardHandler),
		Hooks: paxosbridge.Hooks{Moved: func(string, int, int64, string) { a.completed.Add(1) }},
	})
	a.done(err)
	a.bridge = bridge
	a.locks, err = rowlock.New(bridge, &rowlock.Config{Identity: "web-1/4711/orders", TTL: 5 * time.Second})
	a.done(err)
	a.Cleanup(func() {
		_, _, _, _ = a.locks.Close(), bridge.Close(), cluster.Close(), table.Close()
	})
}

// unclaim has the cluster forget which tables it belongs to.
func (a *app) unclaim() {
	a.Helper()
	got, err := a.etcd.Delete(a.Context(), a.prefix+"t")
	a.done(err)
	if got.Deleted != 1 {
		a.Errorf("%d claims were deleted, want 1", got.Deleted)
	}
}

func (a *app) done(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// lock returns the key of the application, with a token above the last.
func (a *app) lock(key string, last *rowlock.Token) *rowlock.Lock {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), 30*time.Second)
	defer cancel()
	l, err := a.locks.Lock(ctx, key, rowlock.Note("count"))
	a.done(err)
	if l.Token() <= *last {
		a.Fatalf("token %d follows %d", l.Token(), *last)
	}
	*last = l.Token()
	return l
}

// fences fails the test unless the lock passes its fence.
func (a *app) fences(l *rowlock.Lock) {
	a.Helper()
	tx, err := a.DB.BeginTx(a.Context(), nil)
	a.done(err)
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(a.Context(), tx); err != nil {
		a.Errorf("the holder's fence: %v", err)
	}
}

// to is a command line with the application's cluster.
func (a *app) to(args ...string) []string {
	return append(args, "--etcd", a.endpoints, "--etcd-prefix", a.prefix)
}

// prints fails the test unless a command prints a text.
func (a *app) prints(code int, says, text string, args ...string) {
	a.Helper()
	if out := a.wants(code, says, args...); !strings.Contains(out, text) {
		a.Errorf("rowlock %q prints %q, want %q", args, out, text)
	}
}
