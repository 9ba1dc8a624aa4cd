package groupreplication_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect"
	mysqldialect "github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
	"github.com/rowlockdb/rowlock/schema"
)

const (
	ttl = 5 * time.Minute
	// patience bounds waits that must end: a failure takes 6 s to be noticed, and a killed member
	// 20 s to be back.
	patience = 4 * time.Minute
	members  = 3
)

// rig is the group, with tables of its own.
type rig struct {
	testing.TB
	dsns    []string
	dbs     []*sql.DB
	dialect *sqlstore.Dialect
	down    []time.Time // since when each member is out of the group; zero for one that is not
}

var serial atomic.Int64

// newRig waits until the group is whole, because the test before may have killed a member.
func newRig(tb testing.TB) *rig {
	tb.Helper()
	r := &rig{TB: tb, dsns: testdb.Group(tb)}
	tellWhy(tb)
	if len(r.dsns) != members {
		tb.Fatalf("ROWLOCK_TEST_GROUP has %d members", len(r.dsns))
	}
	for _, dsn := range r.dsns {
		r.dbs = append(r.dbs, r.pool(dsn))
	}
	r.whole()
	r.dialect = sqlstore.Of(
		mysqldialect.New(dialect.Prefix(fmt.Sprintf("g%d_%d_", os.Getpid(), serial.Add(1)))),
	)
	if err := schema.Migrate(tb.Context(), r.primary(), r.dialect); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		r.whole()
		if err := schema.Uninstall(context.Background(), r.primary(), r.dialect); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// long skips aloud what takes too long for every run.
func long(tb testing.TB, because string) {
	tb.Helper()
	if os.Getenv("ROWLOCK_TEST_GROUP_LONG") == "" {
		tb.Skipf("SKIPPED: %s; set ROWLOCK_TEST_GROUP_LONG", because)
	}
}

func (r *rig) pool(dsn string) *sql.DB {
	r.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = db.Close() })
	return db
}

// cluster opens a cluster on the rig's tables.
func (r *rig) cluster(opts ...groupreplication.Option) *groupreplication.Cluster {
	r.Helper()
	c, err := r.try(opts...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) try(opts ...groupreplication.Option) (*groupreplication.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return groupreplication.New(ctx, r.dbs, append(opts, r.tables())...)
}

func (r *rig) tables() groupreplication.Option {
	return groupreplication.Tables(dialect.Prefix(r.dialect.Names().Prefix))
}

func (r *rig) primary() *sql.DB {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := groupreplication.Primary(ctx, r.dbs)
	if err != nil {
		r.Fatal(err)
	}
	return db
}

// roles returns the places in dbs of the primary and of the others.
func (r *rig) roles() (primary int, others []int) {
	r.Helper()
	db := r.primary()
	for i := range r.dbs {
		if r.dbs[i] == db {
			primary = i
		} else {
			others = append(others, i)
		}
	}
	return primary, others
}

// exec runs SQL on the primary. {rowlock} and {rowlock_queue} are the tables.
func (r *rig) exec(query string, args ...any) {
	r.Helper()
	r.execOn(r.primary(), query, args...)
}

func (r *rig) execOn(db *sql.DB, query string, args ...any) {
	r.Helper()
	if _, err := db.ExecContext(context.Background(), r.sql(query), args...); err != nil {
		r.Fatalf("%s: %v", query, err)
	}
}

func (r *rig) sql(query string) string {
	p := r.dialect.Names().Prefix
	return strings.NewReplacer(
		"{rowlock}", p+"rowlock", "{rowlock_queue}", p+"rowlock_queue",
	).Replace(query)
}

func (r *rig) empty() {
	r.Helper()
	r.exec(`DELETE FROM {rowlock}`)
	r.exec(`DELETE FROM {rowlock_queue}`)
}

func (r *rig) expire(key string) {
	r.Helper()
	r.exec(
		"UPDATE {rowlock} SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE `key` = ? AND owner IS NOT NULL",
		[]byte(key),
	)
}

func (r *rig) setToken(key string, token lease.Token) {
	r.Helper()
	r.exec("UPDATE {rowlock} SET token = ? WHERE `key` = ?", token, []byte(key))
}

func (r *rig) eventually(what string, done func() bool) {
	r.Helper()
	end := time.Now().Add(patience)
	for !done() {
		if time.Now().After(end) {
			r.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// signal sends a signal to a member's process, which is restarted when it ends.
func (r *rig) signal(member int, s syscall.Signal) {
	r.Helper()
	disturbed.Store(true)
	pid := r.process(member)
	if err := syscall.Kill(pid, s); err != nil {
		r.Fatalf("signal %v to %d: %v", s, pid, err)
	}
	if s == syscall.SIGSTOP {
		r.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		r.eventually("every thread has stopped", func() bool { return stopped(pid) })
	}
}

// stopped reports whether the process will read nothing from now on until it continues.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		line, _ := os.ReadFile(thread)
		if i := strings.LastIndex(string(line), ") "); i < 0 ||
			!strings.HasPrefix(string(line)[i:], ") T") {
			return false
		}
	}
	return len(threads) > 0
}

func (r *rig) port(member int) string {
	r.Helper()
	cfg, err := mysql.ParseDSN(r.dsns[member])
	if err != nil {
		r.Fatal(err)
	}
	_, port, _ := strings.Cut(cfg.Addr, ":")
	return port
}

func (r *rig) process(member int) int {
	r.Helper()
	port := r.port(member)
	lists, _ := filepath.Glob("/proc/" + os.Getenv("ROWLOCK_TEST_GROUP_PID") + "/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.HasPrefix(string(line), "mysqld\x00") &&
				strings.Contains(string(line), "--port="+port+"\x00") {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	r.Fatalf("no process of ROWLOCK_TEST_GROUP_PID listens on port %s", port)
	return 0
}

func request(key string, epoch int64) lease.AcquireRequest {
	return lease.AcquireRequest{
		Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "test", Epoch: epoch,
	}
}

// hold acquires a free key.
func (r *rig) hold(c lease.Store, q lease.AcquireRequest) lease.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := c.Acquire(ctx, []lease.AcquireRequest{q})
	if err != nil || !got[0].Granted {
		r.Fatalf("%q was answered %+v, %v", q.Key, got, err)
	}
	return lease.Lease{Key: q.Key, Owner: q.Owner, Token: got[0].Token}
}

func (r *rig) release(c lease.Store, l lease.Lease) {
	r.Helper()
	if _, err := c.Release(context.Background(), []lease.Lease{l}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}
