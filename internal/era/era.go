// Package era keeps tokens growing across a failover or a restore that has forgotten grants.
//
// Each session that grants learns when it connects which history its server has, and in which era
// of the table that history is. The statements that grant have the era's start in their text, so
// that it costs no round trip, and a session that has not learned it can send none of them.
//
// A connection ends with its server, so that most sessions take no old era to another one. Behind a
// pooler or a proxy one may, and there the text is an expression that fails on every server but the
// one that was asked. Where a server is demoted and promoted again without a restart, a session
// that slept meanwhile connects anew as soon as another session here has learned of an era since.
package era

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// The pauses between two tries to begin an era while another session does.
	firstPause, longestPause, pauseJitter = 10 * time.Millisecond, 200 * time.Millisecond, 0.3
	// unlearned is below every start.
	unlearned = -1
	// enough is how long a session of an open store waits for others that begin an era. What it is
	// to renew waits too.
	enough = time.Second
	// nothing is the start of no era: a statement that had it would fail, because there is no such
	// column. With NULL it would not on PostgreSQL, whose greatest() passes over it.
	nothing = "rowlock_has_learned_no_era"
	// kept is how many histories the table remembers. One that is forgotten begins an era again.
	kept = 64
)

// Eras are those of one opening of the tables.
type Eras struct {
	d      *sqlstore.Dialect
	began  func(start lease.Token)
	opened sqlstore.Opened
	// From the newest that any session here has learned, -1 before the first, to the last that all
	// gates have admitted: every era, if none holds any back.
	bounds conn.EraBounds
	gates  gates
	// The history of which a session has learned last; nil for what is not to be believed any more.
	learned atomic.Pointer[sqlstore.History]
}

// New returns the eras of the tables that d speaks of. It calls began, unless that is nil, for each
// era that a session here has begun after the first. Close ends them.
func New(d *sqlstore.Dialect, began func(start lease.Token)) *Eras {
	e := &Eras{d: d, began: began}
	e.bounds.First.Store(unlearned)
	e.gates.last = &e.bounds.Last
	e.gates.last.Store(math.MaxInt64)
	return e
}

// Close is for after the last session has ended.
func (e *Eras) Close() { e.opened.Close() }

// Newest is the start of the newest era that a session has learned.
func (e *Eras) Newest() lease.Token { return lease.Token(e.bounds.First.Load()) }

// Hold is the HoldEras of an adapter.EraGate.
func (e *Eras) Hold() (admit func(start lease.Token), free func()) { return e.gates.hold(e.Newest()) }

// After returns the function that sets up a session that grants. Once an era is known here, a
// session that can learn none renews and releases all the same: holders need not lose what is
// theirs because a row of the table was edited, a right revoked or the table locked.
func (e *Eras) After(
	setup func(context.Context, *conn.Session) error,
) func(context.Context, *conn.Session) error {
	return func(ctx context.Context, s *conn.Session) error {
		if err := setup(ctx, s); err != nil {
			return err
		}
		err := e.Learn(ctx, s)
		if err != nil && e.Newest() != unlearned && e.isWhole(err) {
			if sqlstore.Judge(e.d, err).Class == sqlstore.Conflict {
				err = fmt.Errorf("%w: %v", sqlstore.ErrNoEra, err)
			}
			s.GrantIn(unlearned, nothing, refuses(err))
			return nil
		}
		return err
	}
}

// Learn has a session grant in the newest era of its server's history. It begins one if the table
// does not know the history, or has forgotten an era that another session here has seen. Nothing is
// granted before that has been committed.
func (e *Eras) Learn(ctx context.Context, s *conn.Session) error {
	if e.d.OneHistory {
		s.EraAt(0)
		return nil
	}
	began := time.Now()
	pauses := retry.Growing(firstPause, longestPause, pauseJitter)
	for first := true; ; first = false {
		h, err := e.find(ctx, s)
		if err == nil {
			e.see(h.Newest)
			e.learned.Store(&h)
			s.GrantIn(h.Newest, e.d.EraText(s, h), e.holds)
			s.Bounds = &e.bounds
			return nil
		}
		// Other sessions may begin the era at this moment, or a file be busy. The first try may have
		// waited for one of them for longer than is enough: the next is likely to find what it began.
		if sqlstore.Judge(e.d, err).Class != sqlstore.Conflict || errors.As(err, new(spoiled)) ||
			e.Newest() != unlearned && !first && time.Since(began) > enough || !retry.Sleep(ctx, pauses.NextBackOff()) {
			return err
		}
	}
}

// find returns a history whose era has begun.
func (e *Eras) find(ctx context.Context, s *conn.Session) (sqlstore.History, error) {
	h, err := e.look(ctx, s)
	switch {
	case err != nil || e.knows(h):
		return h, err
	case h.ReadOnly:
		return h, fmt.Errorf("%w: its history is new to the table, and it takes no writes",
			lease.ErrReadOnly)
	}
	return e.begin(ctx, s)
}

// errPassed has a pinned connection that has slept through the beginning of an era connect anew.
// Where a server can be demoted without ending its connections, they would go on in the old era.
var errPassed = errors.New("an era has begun since the session was made")

// Current returns an error if a session may be at a server of an earlier era than another's here.
func (e *Eras) Current(s *conn.Session) error {
	switch {
	case e.d.OneHistory || s.Era() >= e.Newest():
		return nil
	case s.Era() == unlearned:
		return s.Refusal()
	}
	return conn.NotSent{Err: errPassed}
}

// holds returns an error if a session must not grant in its era.
func (e *Eras) holds(start lease.Token) error {
	switch {
	case start < e.Newest():
		return conn.NotSent{Err: errPassed}
	case int64(start) > e.bounds.Last.Load():
		return conn.NotSent{Err: adapter.ErrNewEra}
	}
	return nil
}

func (e *Eras) look(ctx context.Context, s *conn.Session) (sqlstore.History, error) {
	h, err := e.d.History(ctx, s, &e.opened)
	switch {
	case err != nil:
		return h, err
	case sqlstore.CheckFrom(h.From) != nil:
		return h, sqlstore.CheckFrom(h.From)
	case h.Name == "":
		return h, fmt.Errorf("%w: the server does not say when it was started", lease.ErrUnsupported)
	}
	return h, check(h.Newest, time.Now())
}

func (e *Eras) knows(h sqlstore.History) bool { return h.Known && h.Newest >= e.Newest() }

func (e *Eras) see(start lease.Token) {
	for seen := e.Newest(); seen < start && !e.bounds.First.CompareAndSwap(int64(seen), int64(start)); {
		seen = e.Newest()
	}
}

// begin records the server's history with the next era, unless another session has, and returns
// what the table then has. If it fails it returns no history: what it was about to write may not be
// there. The next session reads what has become of it.
func (e *Eras) begin(ctx context.Context, s *conn.Session) (sqlstore.History, error) {
	var h sqlstore.History
	wrote := false
	err := s.InTx(ctx, func() (err error) {
		if err := e.lock(ctx, s); err != nil {
			return err
		}
		if h, err = e.look(ctx, s); err != nil || e.knows(h) {
			return err
		}
		if h.Newest, err = e.next(ctx, s, h); err != nil {
			return err
		}
		h.Known, wrote = true, h.Newest > 0
		if _, err := s.Exec(ctx, e.d.Text("era-write"), h.Name, h.Newest); err != nil {
			return err
		}
		return e.drop(ctx, s)
	})
	var open conn.Unsettled
	if errors.As(err, &open) {
		err = spoiled{open.Err}
	}
	if err != nil {
		return sqlstore.History{}, err
	}
	if wrote && e.began != nil {
		e.began(h.Newest)
	}
	return h, nil
}

// lock has one session at a time begin an era, until its transaction ends.
func (e *Eras) lock(ctx context.Context, s *conn.Session) error {
	if _, err := s.Exec(ctx, e.d.Text("era-make")); err != nil {
		return err
	}
	_, err := s.Exec(ctx, e.d.Text("era-lock"))
	return err
}

// Rehearse runs what begins an era, and changes nothing: the first failover is too late to find
// that the user lacks a right.
func (e *Eras) Rehearse(ctx context.Context, s *conn.Session) (done bool, err error) {
	if e.d.OneHistory {
		return true, nil
	}
	return true, s.InTx(ctx, func() error {
		if err := e.lock(ctx, s); err != nil {
			return err
		}
		_, err := s.Exec(ctx, e.d.Text("era-drop"), lease.Token(unlearned))
		return err
	})
}

// next returns the start of the era that the history h begins. The first history of new tables has
// the tokens from 1 on.
func (e *Eras) next(ctx context.Context, s *conn.Session, h sqlstore.History) (lease.Token, error) {
	if h.Recorded == 0 && h.Newest == 0 && e.Newest() == unlearned {
		// A backup from before the first client has no history either, and may be restored long after.
		var fresh bool
		if err := s.QueryRow(ctx, e.d.Text("era-fresh"), nil, &fresh); fresh || err != nil {
			return 0, err
		}
	}
	now, err := e.Clock(ctx, s)
	if err != nil {
		return 0, err
	}
	return next(now, max(h.Newest, e.Newest()), time.Now())
}

// Clock is the database's.
func (e *Eras) Clock(ctx context.Context, s *conn.Session) (time.Time, error) {
	var now int64
	err := s.QueryRow(ctx, e.d.Text("era-clock"), nil, &now)
	return time.UnixMicro(now), err
}

// drop forgets all but the newest histories.
func (e *Eras) drop(ctx context.Context, s *conn.Session) error {
	var oldest lease.Token
	err := s.QueryRow(ctx, e.d.Text("era-kept"), []any{kept}, &oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = s.Exec(ctx, e.d.Text("era-drop"), oldest)
	}
	return err
}

// gates hold back what has not been admitted by each of those that audit: bridges to two clusters
// know each what is in its own.
type gates struct {
	last *atomic.Int64 // that all have admitted

	mu  sync.Mutex
	all []*lease.Token
}

// hold has all eras after newest wait for admit, until free is called.
func (g *gates) hold(newest lease.Token) (admit func(start lease.Token), free func()) {
	mine := &newest
	g.change(func() { g.all = append(g.all, mine) })
	admit = func(start lease.Token) { g.change(func() { *mine = max(*mine, start) }) }
	free = func() {
		g.change(func() { g.all = slices.DeleteFunc(g.all, func(a *lease.Token) bool { return a == mine }) })
	}
	return admit, free
}

func (g *gates) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	least := lease.Token(math.MaxInt64)
	for _, a := range g.all {
		least = min(least, *a)
	}
	g.last.Store(int64(least))
}
