package main

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func TestAKeyIsMovedOutAndBackWhileTheApplicationLocksIt(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	const key, shown = "a\xff", `a\xff`
	var last lease.Token
	l := a.lock(key, &last)
	a.prints(1, "1 key was not moved", "held by web-1/4711/orders (count)", a.to("move", shown, "--wait", "100ms")...)
	a.prints(1, "1 key was not moved", "held by", a.to("move", shown, "--wait", "0")...)
	a.fences(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.prints(0, "", shown+" is in cluster 1", a.to("move", shown, "--wait", "30s")...)
	}()
	a.fences(l)
	a.done(l.Unlock(a.Context()))
	<-ended

	a.prints(0, "", "moved to the cluster 1", "show", shown)
	a.prints(0, "", "(cluster 1)", "ls", "--all")
	l = a.lock(key, &last)
	a.prints(0, "", "in cluster 1, in epoch 1 already", a.to("move", shown)...)
	a.prints(1, "1 key was not moved", "held by web-1/4711/orders (count)", a.to("recall", shown, "--wait", "0")...)
	a.prints(2, "belongs to the tables", "", a.to("recall", shown, "--placement", "2")...)
	a.unclaim() // as an older bridge leaves its cluster
	a.prints(2, "the row of "+shown+" names placement 1", "", a.to("recall", shown, "--placement", "2")...)
	a.fences(l)
	a.done(l.Unlock(a.Context()))

	f := scripted("What move and recall print with -o json.")
	f.JSON(t, "recall", a.wants(0, "", a.to("recall", shown, "-o", "json")...))
	f.JSON(t, "move", a.wants(0, "", a.to("move", shown, "-o", "json")...))
	f.JSON(t, "recall", a.wants(0, "", a.to("recall", shown, "-o", "json")...))
	f.Match(t, "../../testdata/wire/move.txt")
	a.prints(0, "", "is in the table already", a.to("recall", shown)...)
	a.done(a.lock(key, &last).Unlock(a.Context()))
	a.prints(0, "", "state    free", "show", shown)
}

// A cluster that is not the application's gets no key, and its table no row.
func TestAClusterOfAnotherApplicationIsRefused(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	other := newBed(t, testdb.Kinds[0].Open(t)).app()
	var last lease.Token
	a.done(a.lock("k", &last).Unlock(t.Context()))
	missing := a.prefix + "missing/"
	a.prints(2, "no bridge has ever used --etcd-prefix", "", "move", "k", "--etcd", a.endpoints,
		"--etcd-prefix", missing)
	if got, err := a.etcd.Get(t.Context(), missing, clientv3.WithPrefix()); err != nil || got.Count > 0 {
		t.Errorf("a refused prefix has %d names, %v", got.Count, err)
	}
	a.prints(2, "belongs to the tables", "", other.to("move", "k")...)
	if got, err := other.etcd.Get(t.Context(), other.prefix+"r/", clientv3.WithPrefix()); err != nil || got.Count > 0 {
		t.Errorf("a cluster that was refused has %d records, %v", got.Count, err)
	}
	other.unclaim()
	other.prints(3, "from a program that keeps the file open", "", other.to("move", "hot")...)
	other.done(other.bridge.MoveOut(t.Context(), "hot", "test"))
	a.prints(2, "the cluster has hot open in epoch ", "", other.to("move", "k")...)
	a.prints(0, "", "state    free", "show", "k")
	a.prints(1, "it is free", "", "show", "hot")
	other.prints(0, "", "hot is in the table", other.to("recall", "hot")...)
}

// A key that has left the table is opened in no cluster that has no record of that, because that
// may be another application's.
func TestAHalfMoveOutIsLeftToTheApplication(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	var last lease.Token
	a.prints(0, "", "k is in cluster 1, in epoch 1", a.to("move", "k")...)
	if _, err := a.etcd.Delete(t.Context(), a.prefix+"r/6b"); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"move", "recall"} {
		a.prints(1, "1 key was not moved", "the cluster has no record of that", a.to(command, "k")...)
	}
	if got, err := a.etcd.Get(t.Context(), a.prefix+"r/6b"); err != nil || got.Count > 0 {
		t.Errorf("the command opened the key: %d, %v", got.Count, err)
	}
	a.done(a.lock("k", &last).Unlock(t.Context()))
	if n := a.completed.Load(); n != 1 {
		t.Errorf("the application completed %d moves, want 1", n)
	}
	a.prints(0, "", "k is in the table", a.to("recall", "k")...)
}

// A sealed epoch is final, so that the command itself completes a half move back.
func TestAHalfMoveBackIsCompletedByTheCommand(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	var last lease.Token
	a.prints(0, "", "k is in cluster 1, in epoch 1", a.to("move", "k")...)
	q := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Minute, Epoch: 1}
	got, err := a.cluster.Acquire(t.Context(), []lease.AcquireRequest{q})
	a.done(err)
	ok, err := a.cluster.Seal(t.Context(), lease.Lease{Key: "k", Owner: q.Owner, Token: got[0].Token})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	last = got[0].Token
	a.prints(0, "", "k is in the table", a.to("recall", "k")...)
	a.prints(0, "", "state    free", "show", "k")
	a.done(a.lock("k", &last).Unlock(t.Context()))
}

// An application without a trace gets none: nothing would sweep it.
func TestAMoveByHandIsTracedAsTheApplicationIs(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	moves := func() (found []string) {
		a.Helper()
		rows, err := a.DB.QueryContext(t.Context(), a.SQL(`SELECT detail FROM {rowlock_trace} WHERE event = ? ORDER BY at`),
			lease.EventMoved.String())
		a.done(err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var detail string
			a.done(rows.Scan(&detail))
			found = append(found, detail)
		}
		a.done(rows.Err())
		return found
	}
	a.prints(0, "", "k is in cluster 1", a.to("move", "k")...)
	if got := moves(); len(got) > 0 {
		t.Errorf("without a trace there are events %q", got)
	}
	traced, err := rowlock.Open(a.Pool(t), a.Dialect, &rowlock.Config{Trace: rowlock.TraceConfig{On: true}})
	a.done(err)
	l, err := traced.Lock(t.Context(), "another")
	a.done(err)
	a.done(l.Unlock(t.Context()))
	a.done(traced.Close()) // which writes the trace
	a.prints(0, "", "k is in the table", a.to("recall", "k")...)
	a.prints(0, "", "k is in cluster 1", a.to("move", "k")...)
	got := moves()
	if len(got) != 2 || !strings.Contains(got[0], "back into the table: by hand of ") ||
		!strings.Contains(got[1], "to placement 1: by hand of ") {
		t.Errorf("the trace has the moves %q", got)
	}
}

func TestAMoveSaysWhatIsMissing(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("k")
	missing := t.TempDir() + "/missing"
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "requires at least 1 arg", []string{"move"}},
		{2, "give --etcd ENDPOINT,… or set ROWLOCK_ETCD", []string{"move", "k"}},
		{2, "give --etcd ENDPOINT,… or set ROWLOCK_ETCD", []string{"recall", "k"}},
		{2, "--etcd-prefix is empty", []string{"move", "k", "--etcd", "x", "--etcd-prefix", ""}},
		{2, "--placement 0 must be 1 to 32766", []string{"move", "k", "--etcd", "x", "--placement", "0"}},
		{2, "--wait -1s is negative", []string{"move", "k", "--etcd", "x", "--wait", "-1s"}},
		{2, "--timeout 1ms is too short", []string{"move", "k", "--etcd", "x", "--timeout", "1ms"}},
		{2, `--cert "a" and --key "" belong together`, []string{"move", "k", "--etcd", "x", "--cert", "a"}},
		{2, "--cacert: open", []string{"move", "k", "--etcd", "x", "--cacert", missing}},
		{2, "has no certificate in PEM", []string{"move", "k", "--etcd", "x", "--cacert", "/dev/null"}},
		{2, "key k is named twice", []string{"move", "k", "k", "--etcd", "x"}},
		{2, `write a backslash as \\`, []string{"recall", `a\b`, "--etcd", "x"}},
		{3, "etcd at 127.0.0.1:1 does not answer", []string{"move", "k", "--etcd", "127.0.0.1:1", "--timeout", "100ms"}},
	} {
		b.wants(c.code, c.says, c.args...)
	}
	if out := b.wants(0, "", "show", "k"); !strings.Contains(out, "state    held") {
		b.Errorf("after refused moves the key is %q", out)
	}
}
