package watchdog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// phase is what a store answers until a moment after it was made.
type phase struct {
	until  time.Duration
	answer renewer
}

func answers(o lease.RenewOutcome) renewer {
	return func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) { return all(reqs, o) }
}

const forever = 1000 * time.Hour

func phases(phases ...phase) *recorder {
	began := time.Now()
	return &recorder{store: renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		for _, p := range phases {
			if time.Since(began) < p.until {
				return p.answer(ctx, reqs)
			}
		}
		return swallow(ctx, reqs)
	})}
}

func TestBusyRowIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := phases(phase{20 * time.Second, answers(lease.Busy)}, phase{forever, extend})
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		time.Sleep(ttl)
		w.alive(t)
		last := w.sent.Add(every)
		for _, s := range store.all() {
			if s.at.Sub(w.sent) > 25*time.Second {
				break
			}
			if gap := s.at.Sub(last); gap > ttl/5 {
				t.Errorf("asked again after %v", gap)
			}
			last = s.at
		}
		time.Sleep(10 * ttl)
		w.alive(t)
	})
}

// Another transaction's lock on the row proves nothing: without the holder's fence the deadline
// stands.
func TestBusyRowWithoutFenceIsLostAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(answers(lease.Busy), watchdog.Config{})
		defer dog.Stop()
		keep(t, dog, "k").endAt(t, trust, lease.ErrLost)
	})
}

// The holder's transaction takes two TTL: no other owner can take the row, so the lock is not lost.
// Afterwards the store says what became of the lease.
func TestFencedLeaseOutlivesItsDeadline(t *testing.T) {
	for name, want := range map[string]struct {
		after renewer
		cause error
	}{
		"and is lost once its transaction has ended":   {answers(lease.Lost), lease.ErrLost},
		"and lives on if it was extended in time":      {extend, nil},
		"and is lost when the store answers no more":   {swallow, lease.ErrLost},
		"and is lost when the store fails":             {refuse, lease.ErrLost},
		"and stays so while the row is locked further": {answers(lease.Busy), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const long = 2 * ttl
				store := phases(phase{long, answers(lease.Busy)}, phase{forever, want.after})
				dog := watchdog.New(store, watchdog.Config{})
				defer dog.Stop()
				w := keep(t, dog, "k")
				time.Sleep(time.Second)
				dog.Fenced(&w.Held, time.Now())
				for time.Since(w.sent) < long-time.Second {
					time.Sleep(time.Second / 3)
					w.alive(t)
				}
				if want.cause == nil {
					time.Sleep(10 * ttl)
					w.alive(t)
					return
				}
				if e := w.end(t, want.cause); e.after > long+margin {
					t.Errorf("told after %v, more than a margin after the transaction's end", e.after)
				}
			})
		})
	}
}

// The last answer that the row was still ours is believed for a margin, counted from before it was
// asked for.
func TestFencedLeaseEndsAMarginAfterTheLastBusyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(time.Second)
			return all(reqs, lease.Busy)
		})
		store := phases(phase{50 * time.Second, busy})
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		dog.Fenced(&w.Held, time.Now())
		e := w.end(t, lease.ErrLost)
		var last time.Duration
		for _, s := range store.all() {
			if sent := s.at.Sub(w.sent); sent < 50*time.Second {
				last = sent
			}
		}
		if e.after != last+margin {
			t.Errorf("ended after %v, the last answer was asked for after %v", e.after, last)
		}
	})
}

func TestBusyAnswerNeverShortensALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := phases(phase{12 * time.Second, answers(lease.Busy)})
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		dog.Fenced(&w.Held, time.Now())
		w.endAt(t, trust, lease.ErrLost)
	})
}

// A renewal that went through shows that no transaction has the row, but only those begun before it
// was sent.
func TestExtensionEndsTheFenceIfItWasSentAfter(t *testing.T) {
	for name, c := range map[string]struct {
		fenced time.Duration // after the renewal was sent, which takes 2 s
		want   error
	}{
		"fenced before the renewal was sent":  {-time.Second, lease.ErrLost},
		"fenced while the renewal was flying": {time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					time.Sleep(2 * time.Second)
					return all(reqs, lease.Extended)
				})
				store := phases(phase{every, slow}, phase{forever, answers(lease.Busy)})
				dog := watchdog.New(store, watchdog.Config{})
				defer dog.Stop()
				w := keep(t, dog, "k")
				// The renewal is due between 9 and 10 s; with a fence at 10 s it is flying, at 8 s
				// it is not.
				time.Sleep(every + min(c.fenced*2, 0))
				if c.fenced > 0 && len(store.all()) != 1 {
					t.Fatal("no renewal is under way")
				}
				dog.Fenced(&w.Held, time.Now())
				if c.want == nil {
					time.Sleep(10 * ttl)
					w.alive(t)
					return
				}
				e := w.end(t, c.want)
				if sent := store.all()[0].at.Sub(w.sent); e.after != sent+trust {
					t.Errorf("ended after %v, want %v after the last extension was asked for at %v", e.after, trust, sent)
				}
			})
		})
	}
}

func TestLeaseReleasedByATransaction(t *testing.T) {
	t.Run("ends unlocked when it was committed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dog := watchdog.New(phases(phase{4 * time.Second, answers(lease.Busy)}, phase{forever, answers(lease.Lost)}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			time.Sleep(time.Second)
			dog.Leaving(&w.Held)
			if e := w.end(t, lease.ErrUnlocked); e.after > 4*time.Second+margin/2 {
				t.Errorf("told after %v", e.after)
			}
			if _, left := dog.InTx(&w.Held); !left {
				t.Error("it is forgotten that the lease was released")
			}
		})
	})
	t.Run("lives on when it was rolled back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dog := watchdog.New(phases(phase{4 * time.Second, answers(lease.Busy)}, phase{5 * ttl, extend}, phase{forever, answers(lease.Lost)}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			time.Sleep(time.Second)
			dog.Leaving(&w.Held)
			if _, left := dog.InTx(&w.Held); !left {
				t.Error("it is not known that the lease may be released")
			}
			time.Sleep(4 * ttl)
			w.alive(t)
			if _, left := dog.InTx(&w.Held); left {
				t.Error("a release of long ago, which never was, is not forgotten")
			}
			w.end(t, lease.ErrLost) // what happens much later is no release
		})
	})
	t.Run("while a renewal sent before is flying", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
				time.Sleep(2 * time.Second)
				return all(reqs, lease.Extended)
			})
			dog := watchdog.New(phases(phase{every, slow}, phase{forever, answers(lease.Lost)}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			time.Sleep(every)
			dog.Leaving(&w.Held)
			w.end(t, lease.ErrUnlocked)
		})
	})
	t.Run("and a renewal sent before says nothing of it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
				time.Sleep(2 * time.Second)
				return all(reqs, lease.Extended)
			})
			dog := watchdog.New(phases(phase{every, slow}, phase{forever, extend}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			time.Sleep(every)
			dog.Leaving(&w.Held)
			time.Sleep(2*time.Second + margin) // the next is soon, and not an interval later
			if _, left := dog.InTx(&w.Held); left {
				t.Error("a release that never was is not forgotten")
			}
		})
	})
	t.Run("and a fence sent after it shows that it was rolled back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dog := watchdog.New(phases(phase{forever, extend}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k", noRenew)
			before := time.Now()
			time.Sleep(time.Second)
			dog.Leaving(&w.Held)
			dog.Fenced(&w.Held, before)
			if _, left := dog.InTx(&w.Held); !left {
				t.Error("a fence from before the release has shown that it never was")
			}
			dog.Fenced(&w.Held, time.Now())
			if fenced, left := dog.InTx(&w.Held); left || !fenced {
				t.Errorf("fenced: %t, left: %t", fenced, left)
			}
		})
	})
	t.Run("after it was dropped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := phases(phase{forever, extend})
			dog := watchdog.New(store, watchdog.Config{})
			defer dog.Stop()
			w, other := keep(t, dog, "k"), keep(t, dog, "other", noRenew)
			dog.Drop(&w.Held)
			dog.Leaving(&w.Held)
			other.endAt(t, trust, lease.ErrLost)
			if n := len(store.all()); n != 0 {
				t.Errorf("%d renewals", n)
			}
		})
	})
}

// behind answers that the row is locked, and that its committed expiry is so far away. It answers
// late, as a network does.
func behind(remaining, late time.Duration) renewer {
	return func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		time.Sleep(late)
		out, err := all(reqs, lease.Busy)
		for i := range out {
			out[i].Remaining = remaining
		}
		return out, err
	}
}

// A fence that was committed has extended the lease. Its holder trusts that until a margin before
// the expiry, counted from before the request that found it, and never for longer than a renewal
// would have given.
func TestFencedLeaseIsTrustedAsFarAsItIsCommitted(t *testing.T) {
	const late = time.Second
	for remaining, want := range map[time.Duration]time.Duration{
		20 * time.Second: 20*time.Second - margin,
		4 * margin / 2:   margin, // as long as a busy answer alone is good for
		-time.Second:     margin,
		10 * ttl:         ttl - margin,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := phases(phase{trust - late, behind(remaining, late)}, phase{forever, swallow})
			dog := watchdog.New(store, watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			dog.Fenced(&w.Held, time.Now())
			e := w.end(t, lease.ErrLost)
			var last time.Duration
			for _, s := range store.all() {
				if sent := s.at.Sub(w.sent); sent < trust-late {
					last = sent
				}
			}
			if until := max(trust, last+want); e.after != until {
				t.Errorf("%s remain: ended after %s, want %s, %s after it was asked for", remaining, e.after, until, want)
			}
		})
	}
}

// What another transaction's lock is behind proves nothing without a fence of ours: the deadline
// stands.
func TestBusyRowWithoutFenceIsNotTrustedFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(behind(ttl, 0), watchdog.Config{})
		defer dog.Stop()
		keep(t, dog, "k").endAt(t, trust, lease.ErrLost)
	})
}
