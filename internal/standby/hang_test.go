package standby_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// A commit that waits for a standby which hangs can be read once its wait has been ended, and the
// standby has not got it. What is only there is told to no caller: a failover would forget it.
func TestWhatTheStandbyHasNotGotIsNotTold(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"TryLock", r.lock},
		{"TryLock that is given up", r.lockGivenUp},
		{"TryLock of a pool that relays cancellations", r.lockRelayed},
		{"optimistic", r.optimistic},
		{"once", r.once},
		{"a fair waiter", r.fair},
		{"a move", r.move},
		{"failover", r.failover}, // the last: there is no pair any more
	} {
		if !t.Run(c.name, c.run) && c.name != "failover" {
			r.Wake(t) // for the next
		}
	}
}

func (r *rig) lock(t *testing.T) {
	c := open(t, pool(t, r.Source), false)
	r.Hang(t)
	call := tryLock(t.Context(), c, "lock")
	r.unacknowledged(t, "lock")
	untold(t, call)

	r.Wake(t)
	got := heard(t, call)
	if got.err != nil {
		t.Fatalf("when the standby is back: %v", got.err)
	}
	if err := got.answer.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func (r *rig) lockGivenUp(t *testing.T) {
	c := open(t, pool(t, r.Source), false)
	r.Hang(t)
	ctx, cancel := context.WithCancel(t.Context())
	call := tryLock(ctx, c, "given up")
	r.unacknowledged(t, "given up")
	cancel()
	got := heard(t, call)
	wantUnknown(t, got.err)

	r.Wake(t) // and what may have been left is cleaned up
	wait, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	l, err := open(t, pool(t, r.Source), false).Lock(wait, "given up")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Unlock(t.Context())
}

// PostgreSQL answers a cancelled wait with success, and a warning that no caller gets to see.
func (r *rig) lockRelayed(t *testing.T) {
	c := open(t, relaying(t, r.Source), false)
	r.Hang(t)
	ctx, cancel := context.WithCancel(t.Context())
	call := tryLock(ctx, c, "relayed")
	r.AwaitCommits(t, 1)
	cancel()
	got := heard(t, call)
	wantUnknown(t, got.err)
	r.Wake(t)
}

func (r *rig) optimistic(t *testing.T) {
	s, err := optimistic.New(pool(t, r.Source), postgres.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r.Hang(t)
	call := begin(func() (lease.Acquired, error) {
		answers, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "cas", Owner: lease.NewOwner(), TTL: ttl}})
		return answers[0], err
	})
	r.unacknowledged(t, "cas")
	untold(t, call)
	r.Wake(t)
	if got := heard(t, call); got.err != nil || !got.answer.Granted {
		t.Errorf("when the standby is back: %+v, %v", got.answer, got.err)
	}
}

const isDone = `SELECT EXISTS (SELECT 1 FROM rowlock_once WHERE key = $1)`

func (r *rig) once(t *testing.T) {
	o := openOnce(t, pool(t, r.Source))
	runs := 0
	r.Hang(t)
	call := begin(func() (once.Result, error) { return o.Do(t.Context(), once.Request{Key: "once"}, counting(&runs)) })
	r.AwaitCommits(t, 1)
	r.CutWaits(t)
	r.visible(t, isDone, []byte("once"))
	r.AwaitCommits(t, 1)
	untold(t, call)
	r.Wake(t)
	if got := heard(t, call); got.err != nil || !got.answer.Replayed || runs != 1 {
		t.Errorf("when the standby is back: %+v, %v after %d runs", got.answer, got.err, runs)
	}
}

func counting(runs *int) once.Func {
	return func(context.Context, *sql.Tx) ([]byte, error) {
		*runs++
		return []byte("done"), nil
	}
}

func (r *rig) fair(t *testing.T) {
	holder, waiter := open(t, pool(t, r.Source), true), open(t, pool(t, r.Source), true)
	l, err := holder.Lock(t.Context(), "fair")
	if err != nil {
		t.Fatal(err)
	}
	call := begin(func() (*rowlock.Lock, error) { return waiter.Lock(t.Context(), "fair") })
	r.visible(t, `SELECT EXISTS (SELECT 1 FROM rowlock_queue WHERE key = $1 AND rank IS NOT NULL)`, []byte("fair"))
	r.Hang(t)
	unlocked := begin(func() (struct{}, error) { return struct{}{}, l.Unlock(t.Context()) })
	r.AwaitCommits(t, 1)
	r.CutWaits(t)
	r.visible(t, `SELECT EXISTS (SELECT 1 FROM rowlock WHERE key = $1 AND token = $2)`, []byte("fair"), l.Token()+1)
	r.AwaitCommits(t, 1) // the waiter's, who has read it
	untold(t, call)
	r.Wake(t)
	heard(t, unlocked)
	got := heard(t, call)
	if got.err != nil || got.answer.Token() != l.Token()+1 {
		t.Fatalf("when the standby is back: %v", got.err)
	}
	_ = got.answer.Unlock(t.Context())
}

// probed hangs the standby between the mover's lock and its departure.
type probed struct {
	*memcluster.Cluster
	probes int
	second func()
}

func (p *probed) Probe(ctx context.Context) error {
	if p.probes++; p.probes == 2 {
		p.second()
	}
	return p.Cluster.Probe(ctx)
}

func (r *rig) move(t *testing.T) {
	cluster := memcluster.New()
	bridge := func(c paxosbridge.Cluster) *paxosbridge.Bridge {
		table, err := rowlock.OpenTable(pool(t, r.Source), postgres.New(), &rowlock.Config{TTL: ttl, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = table.Close() })
		b, err := paxosbridge.New(t.Context(), table, c, &paxosbridge.Config{Every: -1, Refresh: time.Hour, MoveTimeout: patience, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	p := &probed{Cluster: cluster}
	mover, other := bridge(p), bridge(cluster)
	p.probes, p.second = 0, func() { r.Hang(t) }
	moved := begin(func() (struct{}, error) { return struct{}{}, mover.MoveOut(t.Context(), "moved", "test") })
	r.AwaitCommits(t, 1)
	r.CutWaits(t)
	r.visible(t, `SELECT EXISTS (SELECT 1 FROM rowlock WHERE key = $1 AND placement <> 0)`, []byte("moved"))
	call := begin(func() (lease.Acquired, error) {
		answers, err := other.Acquire(t.Context(), []lease.AcquireRequest{{Key: "moved", Owner: lease.NewOwner(), TTL: ttl}})
		if err != nil {
			return lease.Acquired{}, err
		}
		return answers[0], answers[0].Err
	})
	r.AwaitCommits(t, 1)
	if records, err := cluster.Records(t.Context(), "", 10); err != nil || len(records) > 0 {
		t.Errorf("opened %+v, %v for a move that a failover forgets", records, err)
	}
	r.Wake(t)
	if got := heard(t, moved); got.err != nil {
		t.Error(got.err)
	}
	if got := heard(t, call); got.err != nil || !got.answer.Granted || lease.Epoch(got.answer.Token) != 1 {
		t.Errorf("when the standby is back: %+v, %v", got.answer, got.err)
	}
}

// failover forgets what was committed and not acknowledged. The key is granted again then, with a
// token of the era that begins, and the same thing done: no caller was told of either before.
func (r *rig) failover(t *testing.T) {
	first, o := open(t, pool(t, r.Source), false), openOnce(t, pool(t, r.Source))
	if _, err := r.DB.ExecContext(t.Context(), `CREATE TABLE effects (n int)`); err != nil {
		t.Fatal(err)
	}
	pay := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (1)`)
		return []byte("paid"), err
	}
	r.Hang(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lock := tryLock(ctx, first, "lost")
	r.unacknowledged(t, "lost")
	var token lease.Token
	if err := r.DB.QueryRowContext(t.Context(), `SELECT token FROM rowlock WHERE key = $1`, []byte("lost")).Scan(&token); err != nil {
		t.Fatal(err)
	}
	done := begin(func() (once.Result, error) { return o.Do(ctx, once.Request{Key: "lost"}, pay) })
	r.AwaitCommits(t, 2)
	r.CutWaits(t)
	r.visible(t, isDone, []byte("lost"))
	untold(t, lock)
	untold(t, done)
	cancel()
	db := pool(t, r.FailOver(t))
	if got := heard(t, lock); got.err == nil {
		t.Errorf("TryLock told of token %d", got.answer.Token())
	}
	if got := heard(t, done); got.err == nil {
		t.Errorf("Do told %+v", got.answer)
	}

	var rows int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM rowlock WHERE key = $1`, []byte("lost")).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v: the standby had got it, and this test proves nothing", rows, err)
	}
	l, err := open(t, db, false).TryLock(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}
	if l.Token() <= token {
		t.Errorf("token %d, and %d was committed before on the server that is lost", l.Token(), token)
	}
	res, err := openOnce(t, db).Do(t.Context(), once.Request{Key: "lost"}, pay)
	if err != nil || res.Replayed {
		t.Errorf("after the failover: %+v, %v", res, err)
	}
	var effects int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&effects); err != nil || effects != 1 {
		t.Errorf("%d effects, %v", effects, err)
	}
}
