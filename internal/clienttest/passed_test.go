package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// passes runs a test whose section runs begun as soon as its function does: others then wait.
func passes(t *testing.T, f func(t *testing.T, c *rowlock.Client, s *SectionStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := NewSectionStore()
		f(t, Client(t, s, nil), s)
	})
}

// mustWin is what a waiter got.
func mustWin(t *testing.T, w Waited) *rowlock.Lock {
	t.Helper()
	if w.Err != nil {
		t.Fatal(w.Err)
	}
	return w.Lock
}

// wantFreed fails the test unless no owner is left once all that is beside the calls has run.
func wantFreed(t *testing.T, s lease.Store, c *rowlock.Client) {
	t.Helper()
	synctest.Wait()
	if r := Record(t, s, "k"); r.Held {
		t.Errorf("the key is still held: %+v", r)
	}
	if n := c.Stats(); n.Held != 0 || n.Waiting != 0 {
		t.Errorf("%d are held and %d wait", n.Held, n.Waiting)
	}
}

func TestTheCommitOfASectionHandsItsKeyOver(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		s.OnCommit = func(apply func()) error {
			synctest.Wait()
			if len(waiting) > 0 {
				t.Error("the next caller was told before the COMMIT")
			}
			apply()
			synctest.Wait()
			if len(waiting) > 0 {
				t.Error("the next caller was told before the COMMIT was acknowledged")
			}
			return nil
		}
		asked := 0
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k", rowlock.Note("next"))
			asked = len(s.Acquires)
			return nil
		}))
		l := mustWin(t, <-waiting)
		WantAlive(t, l)
		r := Record(t, s, "k")
		if l.Token() != 2 || r.Token != 2 || r.Owner != s.Passed()[0].To.Owner || r.Note != s.Passed()[0].To.Note {
			t.Errorf("token %d, and the row %+v", l.Token(), r)
		}
		if len(s.Acquires) != asked || len(s.HandOvers)+len(s.Releases)+s.asks > 0 {
			t.Errorf("sent %d acquires, %d hand-overs and %d releases beside", len(s.Acquires)-asked, len(s.HandOvers), len(s.Releases))
		}
		if n := c.Stats(); n.Acquired != 2 || n.Released != 1 || n.Held != 1 || n.Lost+n.UnlockFailed != 0 {
			t.Errorf("counted %+v", n)
		}
		Unlock(t, l)
		wantFreed(t, s, c)
	})
}

// The lease of the next caller counts from before its statement.
func TestALeaseOfACommitCountsFromBeforeItsStatement(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var sent time.Time
		s.OnPass = func(lease.HandOver) error { sent = time.Now(); return nil }
		s.OnCommit = func(apply func()) error { time.Sleep(TTL / 3); apply(); return nil }
		var waiting <-chan Waited
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k", rowlock.NoRenew())
			return nil
		}))
		l := mustWin(t, <-waiting)
		if until := l.Deadline(); until.After(sent.Add(TTL)) {
			t.Errorf("trusted for %v after the statement", until.Sub(sent))
		}
		Unlock(t, l)
	})
}

func TestALeaseThatTheCommitHasUsedUpIsNotGranted(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		s.OnCommit = func(apply func()) error { apply(); time.Sleep(TTL * 2 / 3); return nil }
		var waiting <-chan Waited
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			return nil
		}))
		l := mustWin(t, <-waiting)
		if r := Record(t, s, "k"); l.Token() < 3 || r.Owner == s.Passed()[0].To.Owner {
			t.Errorf("granted token %d to %v", l.Token(), r.Owner)
		}
		Unlock(t, l)
		wantFreed(t, s, c)
	})
}

// A conflict at the COMMIT has the function run again; the waiters keep their places meanwhile.
func TestARolledBackHandOverIsNone(t *testing.T) {
	for name, refused := range map[string]error{"conflict": sqlstore.ErrRowLocked, "refused": errors.New("wrapped")} {
		t.Run(name, func(t *testing.T) {
			passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
				if name == "refused" {
					refused = fmt.Errorf("%w", lease.ErrReadOnly)
				}
				commits, ran := 0, 0
				var second, third <-chan Waited
				s.OnCommit = func(apply func()) error {
					if commits++; commits == 1 {
						return refused
					}
					apply()
					return nil
				}
				err := s.DoTx(t.Context(), c, "k", func(context.Context) error {
					if ran++; ran == 1 {
						second, third = Wait(t, c, "k"), Wait(t, c, "k")
					}
					if r := Record(t, s, "k"); r.Token != 1 || !r.Held {
						t.Errorf("run %d under %+v", ran, r)
					}
					return nil
				})
				if conflict := name == "conflict"; conflict != (err == nil) || conflict != (ran == 2) {
					t.Errorf("%v after %d runs", err, ran)
				}
				l := mustWin(t, <-second)
				synctest.Wait()
				if len(third) > 0 {
					t.Error("two hold the key")
				}
				if r := Record(t, s, "k"); r.Owner == s.Passed()[0].To.Owner || r.Token != l.Token() {
					t.Errorf("%+v, and the lock has token %d", r, l.Token())
				}
				Unlock(t, l)
				Unlock(t, mustWin(t, <-third))
				wantFreed(t, s, c)
			})
		})
	}
}

var errCut = errors.New("connection reset")

func TestAnUnknownCommitGrantsNothingByAGuess(t *testing.T) {
	for _, when := range []string{"never", "before", "later"} {
		t.Run(when, func(t *testing.T) {
			passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
				var waiting <-chan Waited
				commits := 0
				s.OnCommit = func(apply func()) error {
					commits++
					switch when {
					case "before":
						apply()
					case "later":
						time.AfterFunc(time.Second, apply)
					}
					return errCut
				}
				err := s.DoTx(t.Context(), c, "k", func(context.Context) error {
					waiting = Wait(t, c, "k")
					return nil
				})
				WantIs(t, "DoTx", err, rowlock.ErrUnknown)
				began := time.Now()
				l := mustWin(t, <-waiting)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the next caller waited for %v", took)
				}
				if r := Record(t, s, "k"); commits != 1 || r.Owner == s.Passed()[0].To.Owner || r.Token != l.Token() {
					t.Errorf("%d commits, and the row is %+v with token %d", commits, r, l.Token())
				}
				Unlock(t, l)
				time.Sleep(10 * time.Second)
				wantFreed(t, s, c)
			})
		})
	}
}

// A next caller whose ctx ends between statement and COMMIT has a lease that it does not want.
func TestAHandOverToACallerThatHasLeftIsPassedOn(t *testing.T) {
	for _, more := range []bool{false, true} {
		passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
			ctx, cancel := context.WithCancel(t.Context())
			var left, waiting <-chan Waited
			s.OnCommit = func(apply func()) error {
				cancel()
				WantIs(t, "the one that left", (<-left).Err, context.Canceled, rowlock.ErrHeld)
				apply()
				return nil
			}
			WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
				left = WaitIn(t, ctx, c, "k")
				if more {
					waiting = Wait(t, c, "k")
				}
				return nil
			}))
			if more {
				began := time.Now()
				Unlock(t, mustWin(t, <-waiting))
				if took := time.Since(began); took > 0 {
					t.Errorf("the next waited for %v", took)
				}
			}
			wantFreed(t, s, c)
		})
	}
}

func TestASectionThatHasLostItsKeyHandsNothingOver(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *rowlock.Client, *SectionStore){
		"forced": func(t *testing.T, c *rowlock.Client, _ *SectionStore) {
			if _, err := c.ForceRelease(t.Context(), "k", rowlock.Force{Reason: "test"}); err != nil {
				t.Error(err)
			}
		},
		"expired": func(_ *testing.T, _ *rowlock.Client, s *SectionStore) {
			s.down.Store(true)
			time.Sleep(TTL + time.Second)
			s.down.Store(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
				var waiting <-chan Waited
				err := s.DoTx(t.Context(), c, "k", func(context.Context) error {
					waiting = Wait(t, c, "k")
					lose(t, c, s)
					return nil
				})
				WantIs(t, "DoTx", err, rowlock.ErrFenced, rowlock.ErrLost)
				if n := s.Passed(); len(n) > 0 {
					t.Errorf("%d were handed over", len(n))
				}
				Unlock(t, mustWin(t, <-waiting))
				wantFreed(t, s, c)
			})
		})
	}
}

// An operator comes between the check of the lock and its statement.
func TestAHandOverThatIsFencedIsTakenBack(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		s.OnPass = func(lease.HandOver) error { return fmt.Errorf("%w: of the test", lease.ErrFenced) }
		err := s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			return nil
		})
		WantIs(t, "DoTx", err, rowlock.ErrFenced, rowlock.ErrLost)
		Unlock(t, mustWin(t, <-waiting))
		wantFreed(t, s, c)
	})
}

func TestCloseWaitsForAHandOverInItsCommit(t *testing.T) {
	passes(t, func(t *testing.T, _ *rowlock.Client, s *SectionStore) {
		c, err := rowlock.New(s, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
		if err != nil {
			t.Fatal(err)
		}
		var waiting <-chan Waited
		closed := make(chan error, 1)
		s.OnCommit = func(apply func()) error {
			go func() { closed <- c.Close() }()
			synctest.Wait()
			WantIs(t, "the next caller", (<-waiting).Err, rowlock.ErrClosed)
			if len(closed) > 0 {
				t.Error("Close has returned")
			}
			apply()
			return nil
		}
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			return nil
		}))
		WantIs(t, "Close", <-closed)
		if r := Record(t, s, "k"); r.Held {
			t.Errorf("left %+v", r)
		}
	})
}

// A server that is not the one which the client knows refuses the hand-over: the second attempt
// releases.
func TestASectionAtAnotherServerReleases(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		ran := 0
		s.OnPass = func(lease.HandOver) error { return conn.Unsettled{Err: errCut} }
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			if ran++; ran == 1 {
				waiting = Wait(t, c, "k")
			}
			return nil
		}))
		if n := len(s.Passed()); ran != 2 || n != 1 || s.strayed != 1 {
			t.Errorf("it ran %d times and handed over %d, strayed %d", ran, n, s.strayed)
		}
		Unlock(t, mustWin(t, <-waiting))
		wantFreed(t, s, c)
	})
}

// Those that want more than the key, or not for themselves, are woken by a release.
func TestASectionHandsItsKeyToPlainCallersOnly(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, *rowlock.Client) (done <-chan Waited){
		"RLock": func(t *testing.T, c *rowlock.Client) <-chan Waited {
			return aside(func() (*rowlock.Lock, error) { return c.RLock(t.Context(), "k") })
		},
		"LockAny": func(t *testing.T, c *rowlock.Client) <-chan Waited {
			Take(t, c, "j")
			return aside(func() (*rowlock.Lock, error) { return c.LockAny(t.Context(), []string{"j", "k"}) })
		},
		"LockAll": func(t *testing.T, c *rowlock.Client) <-chan Waited {
			return aside(func() (*rowlock.Lock, error) {
				all, err := c.LockAll(t.Context(), []string{"k", "l"})
				if err == nil {
					err = all.Unlock(t.Context())
				}
				return nil, err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
				var waiting <-chan Waited
				WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
					waiting = wait(t, c)
					synctest.Wait()
					return nil
				}))
				w := <-waiting
				if w.Err != nil || len(s.Passed()) > 0 {
					t.Errorf("%v, and %d were handed over", w.Err, len(s.Passed()))
				}
				if w.Lock != nil {
					Unlock(t, w.Lock)
				}
			})
		})
	}
}

func aside(f func() (*rowlock.Lock, error)) <-chan Waited {
	done := make(chan Waited, 1)
	go func() { l, err := f(); done <- Waited{l, err} }()
	return done
}

// A section that goes on holding its key hands nothing over.
func TestASectionThatKeepsItsKeyHandsNothingOver(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		began := time.Now()
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			return nil
		}, rowlock.MinHold(time.Minute)))
		Unlock(t, mustWin(t, <-waiting))
		if had := time.Since(began); had < time.Minute {
			t.Errorf("it had its key for %v", had)
		}
		if n := s.Passed(); len(n) > 0 {
			t.Errorf("%d were handed over", len(n))
		}
	})
}

// Sections that come one after the other leave the key to another process within the bounds of
// Unlock's hand-overs.
func TestSectionsLeaveAKeyToOtherProcesses(t *testing.T) {
	passes(t, func(t *testing.T, _ *rowlock.Client, s *SectionStore) {
		const pollMax = 100 * time.Millisecond
		cfg := rowlock.Config{PollMax: pollMax, HandOvers: 4, Reaper: rowlock.ReaperConfig{Off: true}}
		mine, theirs := cfg, cfg
		c, other := Client(t, s, &mine), Client(t, s, &theirs)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
						time.Sleep(time.Millisecond)
						return nil
					}))
				}
			})
		}
		time.Sleep(time.Second)
		handed := len(s.Passed())
		for range 5 {
			began := time.Now()
			l, err := other.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 5*pollMax {
				t.Errorf("another process waited for %v", took)
			}
			Unlock(t, l)
			time.Sleep(20 * time.Millisecond)
		}
		close(stop)
		all.Wait()
		if handed < 100 {
			t.Errorf("%d were handed over in a second", handed)
		}
		wantFreed(t, s, c)
	})
}

// Whatever becomes of COMMITs, waiters and locks, no two sections hold the key at once, tokens
// grow, a nil is a write that was applied, and at the end no owner is left.
func TestRandomSchedulesOfSectionsThatHandOver(t *testing.T) {
	for seed := range uint64(race.Few(60, 300)) {
		passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
			m := &handed{t: t, s: s, c: c, rng: rand.New(rand.NewPCG(seed, 1))}
			m.run()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// handed is such a schedule.
type handed struct {
	t   *testing.T
	s   *SectionStore
	c   *rowlock.Client
	mu  sync.Mutex
	rng *rand.Rand

	inside int
	last   lease.Token
}

func (m *handed) n(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

func (m *handed) run() {
	m.s.OnCommit = m.commit
	m.s.OnPass = func(lease.HandOver) error {
		time.Sleep(time.Duration(m.n(3)) * time.Millisecond)
		if m.n(20) == 0 {
			return fmt.Errorf("%w: of the test", lease.ErrBusy)
		}
		return nil
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			for range 6 {
				m.section()
				time.Sleep(time.Duration(m.n(3)) * time.Millisecond)
			}
		})
	}
	all.Wait()
	time.Sleep(TTL + 10*time.Second)
	wantFreed(m.t, m.s, m.c)
}

func (m *handed) commit(apply func()) error {
	time.Sleep(time.Duration(m.n(4)) * time.Millisecond)
	switch m.n(12) {
	case 0:
		return sqlstore.ErrRowLocked
	case 1:
		return errCut
	case 2:
		apply()
		return errCut
	case 3:
		apply()
		time.Sleep(TTL * 2 / 3)
		return nil
	}
	apply()
	return nil
}

func (m *handed) section() {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(1+m.n(60))*time.Millisecond)
	defer cancel()
	if m.n(4) == 0 {
		l, err := m.c.Lock(ctx, "k")
		if err != nil {
			return
		}
		m.enter(l.Token())
		m.mu.Lock()
		m.inside--
		m.mu.Unlock()
		Unlock(m.t, l)
		return
	}
	_ = m.s.DoTx(ctx, m.c, "k", func(ctx context.Context) error {
		m.enter(Record(m.t, m.s, "k").Token)
		time.Sleep(time.Duration(m.n(3)) * time.Millisecond)
		m.mu.Lock()
		m.inside--
		m.mu.Unlock()
		if m.n(10) == 0 {
			return errCut
		}
		return nil
	})
}

// enter notes a holder. A section may run again under its token.
func (m *handed) enter(token lease.Token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inside++; m.inside > 1 {
		m.t.Errorf("%d hold the key at once", m.inside)
	}
	if token < m.last {
		m.t.Errorf("token %d after %d", token, m.last)
	}
	m.last = token
}
