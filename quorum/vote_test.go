package quorum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// A lease counts from before it was asked for: a majority that is slow has less of it left.
func TestAGrantThatTookTooLongIsNotTold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		s := b.another(Config{Timeout: time.Minute, Drift: 0.1})
		for _, m := range b.at[1:] {
			m.be(asleep)
		}
		for _, c := range []struct {
			took time.Duration
			told bool
		}{{880 * time.Millisecond, true}, {910 * time.Millisecond, false}} {
			b.at[1].delay, b.at[2].delay = c.took, c.took
			q := lease.AcquireRequest{Key: c.took.String(), Owner: lease.NewOwner(), TTL: time.Second}
			one := newBid(q, 3)
			s.contend(context.Background(), []*bid{one}, time.Minute)
			if one.answer.Granted != c.told {
				t.Errorf("after %v of 1s with 10%% drift: %+v", c.took, one.answer)
			}
			if !c.told && !errors.Is(one.answer.Err, lease.ErrBusy) {
				t.Errorf("told late: %v, want lease.ErrBusy", one.answer.Err)
			}
		}
		b.Settle(t.Context())
		time.Sleep(time.Second)
		_ = s.Close()
	})
}

func TestARenewalThatTookTooLongIsNotTold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		s := b.another(Config{Timeout: time.Minute})
		for _, m := range b.at {
			m.delay = 300 * time.Millisecond
			m.be(asleep)
		}
		for ttl, told := range map[time.Duration]bool{1200 * time.Millisecond: true, 301 * time.Millisecond: false} {
			// The bound on a round is a third of the TTL, so that only a direct look shows it.
			var n tally
			n.named = 3
			got := s.renewed(t.Context(), lease.RenewRequest{Lease: l, TTL: ttl}, &n, 300*time.Millisecond)
			if extended := got.Err == nil && got.Outcome == lease.Extended; extended != told {
				t.Errorf("renewed for %v in 300ms: %+v", ttl, got)
			}
		}
		for _, m := range b.at {
			m.be(well)
		}
		_ = s.Close()
	})
}

// The token of a quorum is one that a majority has, and the next majority, whichever it is, has a
// larger one, however far a member lags.
func TestTokensGrowAcrossMajorities(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.at[2].SetToken("k", 1_000_000)
		last := lease.Token(0)
		for round := range 30 {
			away := b.at[round%3]
			away.be([]mode{down, hung, mute}[round%7%3])
			l := b.take("k")
			if l.Token <= last {
				t.Fatalf("round %d: token %d after %d", round, l.Token, last)
			}
			last = l.Token
			if got, err := b.renew(l); err != nil || got != lease.Extended {
				t.Fatalf("round %d: renew with the quorum's token: %v, %v", round, got, err)
			}
			b.release(l)
			away.be(well)
			time.Sleep(3 * window)
		}
		if last < 1_000_000 {
			t.Errorf("the last token is %d, below one that was granted", last)
		}
	})
}

func TestMembersThatAgreeAreNotRaised(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.at[0].SetToken("k", 5)
		for range 10 {
			b.release(b.take("k"))
		}
		raises := 0
		for _, m := range b.at {
			raises += m.calls("raise")
		}
		if raises != 2 {
			t.Errorf("%d raises, want 2: one for each member that lagged, once", raises)
		}
		if l := b.take("k"); b.votes(l) != 3 || l.Token < 8 {
			t.Errorf("token %d has %d votes of members that agree", l.Token, b.votes(l))
		}
	})
}

// A grant rests on the raise of a majority: without it the token would fall later.
func TestWithoutTheRaiseNothingIsGranted(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.at[0].SetToken("k", 100)
		b.at[2].be(down)
		s := b.another(Config{})
		for _, m := range s.members {
			m.raiser = noRaiser{}
		}
		if l, got, err := b.try(s, "k"); got.Granted {
			t.Errorf("granted with token %d, which one member has: %+v, %v", l.Token, got, err)
		}
		b.at[2].be(well)
		time.Sleep(2 * window)
		_ = s.Close()
	})
}

type noRaiser struct{}

func (noRaiser) Raise(_ context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	answers := make([]lease.Raised, len(reqs))
	for i := range answers {
		answers[i].Gone = true
	}
	return answers, nil
}

// An attempt that died with a vote, as of a process that was killed, keeps the key from no other.
func TestAMinorityVoteOfADeadProcessBlocksNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		dead := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		for at := range b.at {
			if _, err := b.at[at].Acquire(t.Context(), []lease.AcquireRequest{dead}); err != nil {
				t.Fatal(err)
			}
			rows, err := b.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
			if err != nil || len(rows) != 1 || rows[0].Held {
				t.Errorf("a key that one of three members has granted is shown as %+v, %v", rows, err)
			}
			b.release(b.take("k"))
			if _, err := b.at[at].Release(t.Context(), []lease.Lease{{Key: "k", Owner: dead.Owner}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each of three attempts has one vote. One of them goes on, and the others leave theirs.
func TestASplitVoteIsResolved(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		for range 50 {
			processes := []*Store{b.Store, b.another(Config{}), b.another(Config{})}
			// Each process reaches another member first.
			var all sync.WaitGroup
			began := time.Now()
			granted := make([]bool, 3)
			for i, s := range processes {
				all.Go(func() {
					for j, m := range s.members {
						m.store = &remote{flaky: b.at[j], by: time.Duration((j-i+3)%3) * 10 * time.Millisecond}
					}
					_, got, err := b.try(s, "k")
					if err != nil {
						t.Error(err)
					}
					granted[i] = got.Granted
				})
			}
			all.Wait()
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("a split vote was resolved after %v", took)
			}
			n := 0
			for _, g := range granted {
				if g {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%d of three attempts that split the votes were granted", n)
			}
			for i, s := range processes {
				s.Settle(t.Context())
				if i > 0 {
					_ = s.Close()
				}
			}
			for _, m := range b.at {
				m.Expire("k")
			}
		}
	})
}

// remote is a member that is far from this process.
type remote struct {
	*flaky
	by time.Duration
}

func (l *remote) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	time.Sleep(l.by)
	return l.flaky.Acquire(ctx, reqs)
}

// A member whose clock runs fast within Drift is counted; one that is mad harms nothing alone.
func TestAFastClockOfAMinorityEndsNoLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.at[1].short = 0.9
		l := b.take("k")
		time.Sleep(ttl / 2)
		if _, got, err := b.try(b.Store, "k"); err != nil || got.Granted {
			t.Errorf("another owner halfway through the lease: %+v, %v", got, err)
		}
		if got, err := b.renew(l); err != nil || got != lease.Extended {
			t.Errorf("renew halfway through: %v, %v", got, err)
		}
	})
}

// A member that restarts empty has forgotten its vote. With its floors raised and kept away for a
// TTL, as the package comment says, it does no harm; this shows that the other two do not need it.
func TestAMemberThatWasKeptAwayForATTLDoesNoHarm(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		old := b.take("k")
		b.at[0].be(down)
		b.at[0].restart()
		b.at[0].RaiseFloor("k", 100)
		time.Sleep(ttl + 1)
		b.at[0].be(well)
		next := b.take("k")
		if next.Token <= old.Token {
			t.Errorf("token %d after %d", next.Token, old.Token)
		}
		if got, err := b.renew(old); err != nil || got != lease.Lost {
			t.Errorf("renew of the old lease: %v, %v", got, err)
		}
	})
}

// What the package comment warns of: without the delay two owners have a majority.
func TestAMemberThatForgetsAndComesBackAtOnceBreaksExclusion(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.at[2].be(down)
		old := b.take("k")
		b.at[2].be(well)
		b.at[0].restart()
		next := b.take("k")
		if got, _ := b.renew(old); got == lease.Extended {
			t.Error("the old lease is told to be alive beside the new one")
		}
		if b.votes(next) < 2 {
			t.Errorf("the new lease has %d votes", b.votes(next))
		}
	})
}
