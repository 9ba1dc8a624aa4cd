package quorum_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/quorum"
)

// deaf is a member that can be away, answer an acquire later, or keep what it is to release.
type deaf struct {
	*memstore.Store
	away, keeps atomic.Bool
	later       chan struct{}
}

var errAway = errors.New("connection refused")

func (d *deaf) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if d.away.Load() {
		return nil, errAway
	}
	if later := d.later; later != nil {
		<-later
	}
	return d.Store.Acquire(ctx, reqs)
}

func (d *deaf) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if d.away.Load() || d.keeps.Load() {
		return nil, errAway
	}
	return d.Store.Release(ctx, leases)
}

// trio is a quorum of three, whose first member is one token ahead: its next vote has the token of
// the others' next but one.
type trio struct {
	*testing.T
	*quorum.Store
	members [3]*deaf
}

func newTrio(t *testing.T) *trio {
	q := &trio{T: t}
	for i := range q.members {
		q.members[i] = &deaf{Store: memstore.New()}
	}
	_, err := q.members[0].Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: time.Nanosecond}})
	if err == nil {
		q.Store, err = quorum.New(q.members[0], q.members[1], q.members[2])
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	return q
}

func (q *trio) ask(owner lease.Owner) lease.Acquired {
	q.Helper()
	a, err := q.Acquire(q.Context(), []lease.AcquireRequest{{Key: "k", Owner: owner, TTL: ttl}})
	if err != nil {
		q.Error(err)
		return lease.Acquired{}
	}
	return a[0]
}

func (q *trio) release(owner lease.Owner, token lease.Token) {
	q.Helper()
	if _, err := q.Release(q.Context(), []lease.Lease{{Key: "k", Owner: owner, Token: token}}); err != nil {
		q.Fatal(err)
	}
}

// refused has an owner ask while another has the key at all members but the first. later comes when
// that one can be asked again. Then the key is free, and the third member is away.
func (q *trio) refused(owner lease.Owner, later func(first *deaf)) {
	q.Helper()
	theirs, first := lease.NewOwner(), q.members[0]
	first.away.Store(true)
	other := q.ask(theirs)
	first.away.Store(false)
	later(first)
	if a := q.ask(owner); a.Granted {
		q.Fatalf("%+v, and another has it", a)
	}
	q.release(theirs, other.Token)
	q.members[2].away.Store(true)
}

// alone sees that no other can have the key that an owner has, when what was left is cleaned.
func (q *trio) alone(owner lease.Owner, a lease.Acquired) {
	q.Helper()
	if !a.Granted {
		q.Fatalf("%+v, and two members of three are free", a)
	}
	time.Sleep(3 * time.Second)
	if b := q.ask(lease.NewOwner()); b.Granted {
		q.Errorf("%+v, and another has %+v", b, a)
	}
	q.release(owner, a.Token)
	if err := q.Close(); err != nil {
		q.Error(err)
	}
}

// A vote that was given back, and not heard of, is released later. If the same owner asks again
// meanwhile, and has a majority, that release must not take a vote from it.
func TestAReleaseOfAVoteEndsNoLaterLeaseOfItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, mine := newTrio(t), lease.NewOwner()
		q.refused(mine, func(first *deaf) { first.keeps.Store(true) })
		a := q.ask(mine)
		q.members[0].keeps.Store(false)
		q.members[2].away.Store(false)
		q.alone(mine, a)
	})
}

// A member may grant a vote after its bid was refused. If the same owner asks again meanwhile, the
// vote is that of the later bid: to give it back for the first would take it from the second.
func TestALateVoteIsThatOfTheLatestBid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, mine := newTrio(t), lease.NewOwner()
		q.refused(mine, func(first *deaf) { first.later = make(chan struct{}) })
		again := make(chan lease.Acquired)
		go func() { again <- q.ask(mine) }()
		synctest.Wait()
		close(q.members[0].later)
		a := <-again
		synctest.Wait()
		q.members[2].away.Store(false)
		q.alone(mine, a)
	})
}

// Of the members that answer first, one may have granted another token than the majority whose
// lease was told: the rest of that majority is waited for.
func TestAnOwnerThatAsksAgainIsToldOfTheSameLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, mine, late, slow := newTrio(t), lease.NewOwner(), make(chan struct{}), make(chan struct{})
		q.members[0].later = late
		first := q.ask(mine)
		close(late) // it grants the next token, which is not the lease's
		synctest.Wait()
		q.members[2].later = slow
		time.AfterFunc(time.Second, func() { close(slow) })
		if again := q.ask(mine); !again.Granted || again.Token != first.Token {
			t.Errorf("told of %+v, and then of %+v", first, again)
		}
		q.alone(mine, first)
	})
}

// A copy whose caller has left lets none go past those before it: they would choose two tokens.
func TestACopyThatHasLeftKeepsThoseBehindItInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, mine := newTrio(t), lease.NewOwner()
		ahead, behind, never := make(chan struct{}), make(chan struct{}), make(chan struct{})
		q.members[0].later, q.members[1].later = ahead, behind
		first, third := make(chan lease.Acquired, 1), make(chan lease.Acquired, 1)
		go func() { first <- q.ask(mine) }()
		synctest.Wait() // the third member has granted it
		left, leave := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			_, err := q.Acquire(left, []lease.AcquireRequest{{Key: "k", Owner: mine, TTL: ttl}})
			second <- err
		}()
		synctest.Wait()
		leave()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that of its ctx", err)
		}
		q.members[0].later = never
		go func() { third <- q.ask(mine) }()
		synctest.Wait()
		close(ahead)
		a := <-first
		close(behind)
		if c := <-third; c.Token != a.Token || !c.Granted {
			t.Errorf("told of %+v, and then of %+v", a, c)
		}
		close(never)
		q.alone(mine, a)
	})
}
