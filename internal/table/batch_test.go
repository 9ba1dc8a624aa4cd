package table_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// crowd is calls that are pending together: what they ask is one batch.
type crowd struct {
	*rig
	gate    *faultdb.Gate // at which the pinned connection is, until go
	pending sync.WaitGroup
	running sync.WaitGroup
}

// gather keeps the store's only pinned connection busy.
func (r *rig) gather(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{rig: r, gate: faultdb.NewGate()}
	t.Cleanup(c.gate.Release)
	r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.Block(c.gate))))
	c.running.Go(func() { release(t, r.store, lease.Lease{Key: "nobody's", Owner: lease.NewOwner()}) })
	<-c.gate.Arrived()
	return c
}

// telling is a context that tells when a caller waits for it: the caller has submitted its op by
// then.
type telling struct {
	context.Context
	tell func()
}

func (c telling) Done() <-chan struct{} {
	c.tell()
	return c.Context.Done()
}

// add makes a call, and returns when it is pending.
func (c *crowd) add(ctx context.Context, call func(ctx context.Context)) {
	c.pending.Add(1)
	c.running.Go(func() { call(telling{ctx, sync.OnceFunc(c.pending.Done)}) })
	c.pending.Wait()
}

// run has the pinned connection go on, under other faults, and returns when every call has.
func (c *crowd) run(faults faultdb.Injector) []faultdb.Op {
	c.log.Reset()
	c.faults.Set(faults)
	c.gate.Release()
	c.running.Wait()
	c.faults.Set(nil)
	return c.log.Ops()
}

// keys makes rows that are free, and returns their tokens.
func (r *rig) keys(t *testing.T, names ...string) map[string]lease.Token {
	t.Helper()
	tokens := make(map[string]lease.Token, len(names))
	for _, name := range names {
		l := hold(t, r.clean, name)
		release(t, r.clean, l)
		tokens[name] = l.Token
	}
	return tokens
}

func numbered(name string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s %02d", name, i)
	}
	return names
}

// longNote is as long as a client writes.
var longNote = lease.StoredNote(strings.Repeat("é", lease.MaxIdentity/2), `a "note"\`+strings.Repeat("☕", 82))

func request(key string) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: longNote}
}

// wantGranted asks for key, and wants the one grant after token last, or for a key without a row
// any.
func (r *rig) wantGranted(ctx context.Context, t *testing.T, key string, last lease.Token) {
	req := request(key)
	a, err := ask(ctx, r.store, req)
	if err != nil || !a.Granted || last > 0 && a.Token != last+1 {
		t.Errorf("%s: got %+v, %v; want the one grant after token %d", key, a, err, last)
		return
	}
	if row := r.row(t, key); row.Lease != (lease.Lease{Key: key, Owner: req.Owner, Token: a.Token}) || !row.Held || row.Note != req.Note {
		t.Errorf("%s: granted with token %d, and the row is %+v", key, a.Token, row)
	}
}

func (r *rig) wantReleased(ctx context.Context, t *testing.T, l lease.Lease) {
	answers, err := r.store.Release(ctx, []lease.Lease{l})
	if err != nil || answers[0].Gone {
		t.Errorf("%s: released with %+v, %v", l.Key, answers, err)
	}
}

func (r *rig) wantHandedOver(ctx context.Context, t *testing.T, l lease.Lease) {
	answers, err := r.store.HandOver(ctx, []lease.HandOver{{From: l, To: request(l.Key)}})
	if err != nil || !answers[0].Granted || answers[0].Token != l.Token+1 {
		t.Errorf("%s: handed over with %+v, %v", l.Key, answers, err)
	}
}

// mixed adds three calls of each kind, and ten acquires. It returns the keys that are free in the
// end.
func (c *crowd) mixed(t *testing.T, series string) (free []string) {
	for key, last := range c.keys(t, numbered(series+" acquired", 10)...) {
		c.add(t.Context(), func(ctx context.Context) { c.wantGranted(ctx, t, key, last) })
	}
	for _, key := range numbered(series+" fresh", 3) {
		c.add(t.Context(), func(ctx context.Context) { c.wantGranted(ctx, t, key, 0) })
	}
	for _, key := range numbered(series+" released", 3) {
		l := hold(t, c.clean, key)
		c.add(t.Context(), func(ctx context.Context) { c.wantReleased(ctx, t, l) })
		free = append(free, key)
	}
	for _, key := range numbered(series+" handed over", 3) {
		l := hold(t, c.clean, key)
		c.add(t.Context(), func(ctx context.Context) { c.wantHandedOver(ctx, t, l) })
	}
	return free
}

func eachStrategy(t *testing.T, f func(t *testing.T, r *rig)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			t.Run(strategy.String(), func(t *testing.T) { f(t, newRig(t, e, strategy, 1)) })
			e.Exec(t, `DELETE FROM {rowlock}`)
		}
	})
}

// Nineteen calls, and no more statements, or on SQLite transactions, than a dialect needs for them
// all.
func TestWhatIsPendingIsOneBatch(t *testing.T) {
	eachStrategy(t, func(t *testing.T, r *rig) {
		c := r.gather(t)
		free := c.mixed(t, "one")
		ops := c.run(nil)
		commits := 0
		for _, op := range ops {
			// SQLite has them all in one transaction.
			if op.Executes() && (r.Name != "sqlite" || op.Query == "COMMIT") {
				commits++
			}
		}
		if most := 7; commits > most {
			t.Errorf("%d statements, or transactions, for 19 calls, want at most %d: %v", commits, most, ops)
		}
		for _, key := range free {
			if row := r.row(t, key); row.Held {
				t.Errorf("%s was released, and the row is %+v", key, row)
			}
		}
	})
}

// Wherever a batch is cut, before a statement arrives or after it was executed, each of its calls
// ends as if it had been alone.
func TestABatchThatFailsIsResolvedOneByOne(t *testing.T) {
	eachStrategy(t, func(t *testing.T, r *rig) {
		phases := map[string]faultdb.Fault{
			"never sent": faultdb.FailBeforeSend(), "reply lost": faultdb.LoseReply(),
			"never sent, bad": faultdb.FailBeforeSend().Reporting(driver.ErrBadConn), "reply lost, bad": faultdb.LoseReply().Reporting(driver.ErrBadConn),
		}
		for name, fault := range phases {
			for n := int64(1); ; n++ {
				c := r.gather(t)
				free := c.mixed(t, fmt.Sprint(name, n))
				counter := faultdb.NewCounter(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(n, fault)))
				c.run(counter)
				for _, key := range free {
					if row := r.row(t, key); row.Held {
						t.Errorf("%s: it was released, and the row is %+v", key, row)
					}
				}
				if counter.Faults() == 0 || n > 8 || t.Failed() {
					t.Logf("%s: %d places", name, n-1)
					break
				}
			}
		}
	})
}

// One caller leaves before the batch is sent, one while it runs: the others do not notice.
func TestALeaverHarmsNobodyInHisBatch(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		tokens := r.keys(t, "early", "late")
		c := r.gather(t)
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		defer leaveLate()
		withdrawn := make(chan struct{})
		c.add(early, func(ctx context.Context) {
			defer close(withdrawn)
			_, err := ask(ctx, r.store, request("early"))
			wantIs(t, err, context.Canceled)
			wantNot(t, err, lease.ErrUnknown)
		})
		gone := make(chan struct{})
		c.add(late, func(ctx context.Context) {
			defer close(gone)
			_, err := ask(ctx, r.store, request("late"))
			wantIs(t, err, context.Canceled, lease.ErrUnknown)
		})
		c.mixed(t, "others")
		leaveEarly()
		<-withdrawn // or the pinned connection may begin it first
		sent := faultdb.NewGate()
		go func() {
			<-sent.Arrived()
			leaveLate()
			<-gone
			sent.Release()
		}()
		// The first is what kept the pinned connection busy: a release, which SQLite has settings around.
		statement := func(op faultdb.Op) bool { return op.Executes() && !strings.HasPrefix(op.Query, "PRAGMA") }
		c.run(faultdb.OnFunc(statement, faultdb.Nth(2, faultdb.BlockAfter(sent))))
		if row := r.row(t, "early"); row.Held || row.Token != tokens["early"] {
			t.Errorf("a request that was withdrawn left %+v", row)
		}
	})
}

// What cannot be applied fails by itself: a key whose tokens have run out, and a note that is no
// text.
func TestAPoisonousItemFailsAlone(t *testing.T) {
	eachStrategy(t, func(t *testing.T, r *rig) {
		r.keys(t, "exhausted", "no text")
		r.Exec(t, `UPDATE {rowlock} SET token = ? WHERE {key} = ?`, lease.MaxToken, []byte("exhausted"))
		c := r.gather(t)
		c.add(t.Context(), func(ctx context.Context) {
			_, err := ask(ctx, r.store, request("exhausted"))
			wantIs(t, err, lease.ErrTokenExhausted)
		})
		c.add(t.Context(), func(ctx context.Context) {
			req := request("no text")
			req.Note = "\xff\xfe"
			a, err := ask(ctx, r.store, req)
			// The others keep whatever bytes they are given.
			if refused := err != nil; refused != (r.Name == "postgres") {
				t.Errorf("a note that is no text: %+v, %v", a, err)
			}
			if row := r.row(t, "no text"); a.Granted && row.Note != req.Note {
				t.Errorf("a note of %q became %q", req.Note, row.Note)
			}
			wantNot(t, err, lease.ErrUnknown)
		})
		c.mixed(t, "others")
		c.run(nil)
	})
}

// A fence may last: a release of its key, and a request for it when the lease has run out, wait by
// themselves.
func TestALockedRowKeepsNobodyElseInTheBatchWaiting(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("a fence locks the whole file")
		}
		r := newRig(t, e, adapter.Update, 1)
		round := 0
		// A pinned connection waits a second for a row.
		servertest.AtOnce(t, 900*time.Millisecond, "the wait of the others", func() time.Duration {
			round++
			return r.besideLockedRows(t, fmt.Sprint("round ", round, " "))
		})
	})
}

// besideLockedRows returns how long others were waiting in a batch with requests for two rows that
// a transaction keeps.
func (r *rig) besideLockedRows(t *testing.T, round string) (took time.Duration) {
	t.Helper()
	fenced, expired := hold(t, r.clean, round+"fenced"), hold(t, r.clean, round+"expired")
	tx, err := r.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	r.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte(expired.Key))
	for _, l := range []lease.Lease{fenced, expired} {
		if err := r.clean.Fence(t.Context(), lease.InTx(tx), l); err != nil {
			t.Fatal(err)
		}
	}
	keys := r.keys(t, numbered(round+"other", 10)...)
	c := r.gather(t)
	ending := make(chan struct{})
	c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, fenced) })
	c.add(t.Context(), func(ctx context.Context) {
		a, err := ask(ctx, r.store, request(expired.Key))
		select {
		case <-ending: // it may be granted now
		default:
			if err != nil || a.Granted {
				t.Errorf("expired, and behind a fence: got %+v, %v", a, err)
			}
		}
	})
	var others sync.WaitGroup
	for key, last := range keys {
		others.Add(1)
		c.add(t.Context(), func(ctx context.Context) {
			defer others.Done()
			r.wantGranted(ctx, t, key, last)
		})
	}
	began := time.Now()
	c.running.Go(func() {
		others.Wait()
		took = time.Since(began)
		close(ending)
		_ = tx.Rollback()
	})
	c.run(nil)
	return took
}

// Two requests for one key, and one for a key that is released in the same batch: one by one they
// would be granted once each, and so they are.
func TestAKeyThatComesTwiceInABatch(t *testing.T) {
	eachStrategy(t, func(t *testing.T, r *rig) {
		last := r.keys(t, "wanted")["wanted"]
		held := hold(t, r.clean, "released")
		c := r.gather(t)
		var mu sync.Mutex
		var granted []lease.Token
		for range 3 {
			c.add(t.Context(), func(ctx context.Context) {
				a, err := ask(ctx, r.store, request("wanted"))
				mu.Lock()
				defer mu.Unlock()
				if wantIs(t, err, nil); a.Granted {
					granted = append(granted, a.Token)
				} else if a.Holder.Note == "" {
					t.Errorf("not granted, and held by nobody: %+v", a)
				}
			})
		}
		c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, "released", held.Token) })
		c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, held) })
		c.run(nil)
		if len(granted) != 1 || granted[0] != last+1 {
			t.Errorf("granted with tokens %d, want %d once", granted, last+1)
		}
	})
}
