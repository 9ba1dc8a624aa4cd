package groupreplication_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// soon bounds the time without service after the primary fails. It is suspected after 5 s and
// expelled at once; on a machine with other work three servers of MySQL take several times as long.
const soon = time.Minute

// ledger has every answered grant, and checks that a key has one holder at a time and growing
// tokens.
type ledger struct {
	testing.TB
	mu     sync.Mutex
	held   map[string]lease.Owner
	last   map[string]lease.Token
	grants int
	at     time.Time     // of the last grant
	pause  time.Duration // the longest time without a grant
}

func (l *ledger) granted(g lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if by, held := l.held[g.Key]; held || g.Token <= l.last[g.Key] {
		l.Errorf("%q: token %d after %d; held by %v: %t", g.Key, g.Token, l.last[g.Key], by, held)
	}
	l.held[g.Key], l.last[g.Key] = g.Owner, g.Token
	if l.grants++; !l.at.IsZero() {
		l.pause = max(l.pause, time.Since(l.at))
	}
	l.at = time.Now()
}

// released is called before the request is sent, because it may take effect at any time from then
// on.
func (l *ledger) released(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grants
}

const keys = 3

// load has six goroutines of two processes acquire and release three keys, until stop is called.
func (r *rig) load() (l *ledger, stop func()) {
	r.Helper()
	l = &ledger{TB: r.TB, held: make(map[string]lease.Owner), last: make(map[string]lease.Token)}
	done, wg := make(chan struct{}), &sync.WaitGroup{}
	for range 2 {
		c := r.cluster(groupreplication.Connections(4), groupreplication.Timeout(3*time.Second))
		for key := range keys {
			r.must(c.Open(r.Context(), fmt.Sprint("k", key), 1))
		}
		for n := range keys {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						l.pair(c, fmt.Sprint("k", n))
					}
				}
			})
		}
	}
	return l, sync.OnceFunc(func() { close(done); wg.Wait() })
}

// pair repeats a request with an unknown outcome with the same owner, as rowlock's orphan cleaner
// would release it.
func (l *ledger) pair(c lease.Store, key string) {
	q := request(key, 1)
	var got []lease.Acquired
	if !l.insist("acquire", func(ctx context.Context) (err error) {
		got, err = c.Acquire(ctx, []lease.AcquireRequest{q})
		return err
	}) {
		return
	}
	if got[0].Err != nil {
		l.Errorf("%+v", got[0])
	}
	if !got[0].Granted {
		time.Sleep(time.Millisecond) // nothing depends on it; the other goroutines share two cores
		return
	}
	g := lease.Lease{Key: key, Owner: q.Owner, Token: got[0].Token}
	l.granted(g)
	l.released(key)
	l.insist("release", func(ctx context.Context) error {
		_, err := c.Release(ctx, []lease.Lease{g})
		return err
	})
}

func (l *ledger) insist(what string, f func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			l.Errorf("%s: not within %v: %v", what, patience, err)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// serves waits for some more grants.
func (r *rig) serves(l *ledger) {
	r.Helper()
	from := l.count()
	r.eventually("the cluster serves", func() bool { return l.count() > from+30 })
}

// survive has the primary fail under load, and wants grants on another.
func (r *rig) survive(fail func(primary int)) {
	r.Helper()
	l, stop := r.load()
	defer stop()
	r.serves(l)
	before, _ := r.roles()
	fail(before)
	r.serves(l)
	stop()
	// The old primary may still say so for a moment after it wakes.
	r.eventually("another is primary", func() bool {
		after, _ := r.roles()
		return after != before
	})
	if l.pause > soon {
		r.Errorf("nothing was granted for %v", l.pause)
	}
	r.Logf("%d grants; the longest pause was %v", l.grants, l.pause.Round(10*time.Millisecond))
}

func TestOneHolderWhenThePrimaryIsKilled(t *testing.T) {
	r := newRig(t)
	r.survive(func(primary int) { r.signal(primary, syscall.SIGKILL) })
}

// A primary that was stopped while another was elected wakes in the middle of a grant.
func TestAPrimaryThatWakesGrantsNothing(t *testing.T) {
	r := newRig(t)
	c := r.cluster(groupreplication.Timeout(3 * time.Second))
	r.must(c.Open(t.Context(), "late", 1))
	l := r.hold(c, request("late", 1))
	r.release(c, l)
	late, ours := lease.NewOwner(), request("late", 1)
	answer := make(chan error, 1)
	var next lease.Lease
	r.survive(func(primary int) {
		conn, err := r.dbs[primary].Conn(t.Context())
		r.must(err)
		r.signal(primary, syscall.SIGSTOP)
		go func() {
			defer conn.Close()
			_, err := conn.ExecContext(
				t.Context(), r.dialect.Text("group-take"), late[:], []byte("late"),
				ttl.Microseconds(), []byte("late"), []byte("late"), lease.Token(1)<<lease.EpochShift,
				lease.Token(2)<<lease.EpochShift,
			)
			answer <- err
		}()
		next = r.hold(c, ours)
		r.signal(primary, syscall.SIGCONT)
	})
	if err := <-answer; err == nil {
		t.Error("the primary that woke said that it had granted the key")
	} else {
		t.Log(err)
	}
	rows, err := c.Inspect(t.Context(), lease.Filter{Keys: []string{"late"}})
	if err != nil || len(rows) != 1 || rows[0].Lease != next || next.Token != l.Token+1 {
		t.Errorf("the row is %+v, %v; want %+v after %+v", rows, err, next, l)
	}
}

// A primary without the others commits nothing. It does not know yet that it is alone, and still
// reads.
func TestAPrimaryWithoutTheMajorityGrantsNothing(t *testing.T) {
	r := newRig(t)
	c := r.cluster(groupreplication.Timeout(time.Second))
	_, others := r.roles()
	l := r.hold(c, request("held", 0))
	for _, i := range others {
		r.signal(i, syscall.SIGSTOP)
	}
	// No member is suspected before 5 s.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	again := lease.AcquireRequest{Key: "held", Owner: l.Owner, TTL: ttl}
	for _, q := range []lease.AcquireRequest{request("free", 0), again} {
		wg.Go(func() {
			got, err := c.Acquire(ctx, []lease.AcquireRequest{q})
			if !errors.Is(err, lease.ErrUnknown) {
				t.Errorf("%q was answered %+v, %v by a primary without a majority", q.Key, got, err)
			}
		})
	}
	wg.Go(func() {
		if err := c.Probe(ctx); err == nil {
			t.Error("the probe was answered")
		}
	})
	wg.Wait()
	for _, i := range others {
		r.signal(i, syscall.SIGCONT)
	}
	r.release(c, r.hold(c, request("after", 0)))
}

// Members that all ended at once find no group to join. It is made anew by the one that has all.
func TestAGroupThatWasDownKeepsItsHolders(t *testing.T) {
	long(t, "the members look for their group before it is made anew")
	r := newRig(t)
	c := r.cluster()
	l := r.hold(c, request("k", 0))
	for i := range r.dbs {
		r.signal(i, syscall.SIGKILL)
	}
	r.whole()
	got, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("k", 0)})
	if err != nil || got[0].Granted {
		t.Errorf("what is held was answered %+v, %v", got, err)
	}
	r.release(c, l)
	if next := r.hold(c, request("k", 0)); next.Token != l.Token+1 {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

// What a primary says about statements it had sent before it gave up means nothing: the others may
// have them, and commit them.
func TestAPrimaryThatGivesUpLeavesTheOutcomeUnknown(t *testing.T) {
	long(t, "it breaks the group apart, which can take minutes to come together")
	r := newRig(t)
	primary, others := r.roles()
	for _, i := range others {
		r.signal(i, syscall.SIGSTOP)
	}
	began := time.Now()
	err := r.insertRaw(r.dbs[primary], "raw")
	if v := sqlstore.Judge(r.dialect, err); !errors.As(err, new(*driving.MySQLError)) ||
		v.Class != sqlstore.Unknown {
		t.Errorf("the commit was answered %v, which is %s", err, v.Class)
	}
	gaveUp := time.Since(began)
	if gaveUp > soon {
		t.Errorf("it gave up after %v", gaveUp)
	}
	for _, i := range others {
		r.signal(i, syscall.SIGCONT)
	}
	r.whole()
	var n int
	r.must(
		r.primary().QueryRow(r.sql("SELECT COUNT(*) FROM {rowlock} WHERE `key` = 'raw'")).Scan(&n),
	)
	t.Logf(
		"the commit was answered %v after %v; then there were %d rows of it", err,
		gaveUp.Round(10*time.Millisecond), n,
	)
}

func (r *rig) insertRaw(db *sql.DB, key string) error {
	_, err := db.Exec(r.dialect.Text("group-raise"), []byte(key), 0, int64(1)<<lease.EpochShift)
	return err
}
