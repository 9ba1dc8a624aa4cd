package rowlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

// told collects the calls of a client's hooks.
type told chan string

func (h told) hooks() rowlock.Hooks {
	say := func(format string, args ...any) { h <- fmt.Sprintf(format, args...) }
	return rowlock.Hooks{
		Acquired: func(_ context.Context, key string, token lease.Token, waited time.Duration) {
			say("acquired %s %d after %v", key, token, waited.Round(time.Second))
		},
		Contended: func(_ context.Context, key string, holder *rowlock.HeldError) {
			say("contended %s %q %v", key, holder.Note, holder.Remaining)
		},
		Released: func(_ context.Context, key string, token lease.Token, held time.Duration) {
			say("released %s %d after %v", key, token, held)
		},
		Lost: func(_ context.Context, key string, token lease.Token, cause error) {
			say("lost %s %d: %v", key, token, cause)
		},
		RenewFailed: func(_ context.Context, err error, leases int) { say("failed %d: %v", leases, err) },
		Skewed:      func(_ context.Context, ahead time.Duration) { say("skewed %v", ahead) },
	}
}

// expect compares the calls since the last time.
func (h told) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	got := []string{}
	for len(h) > 0 {
		got = append(got, <-h)
	}
	if !slices.Equal(got, want) {
		t.Errorf("called: %q, want %q", got, want)
	}
}

// hooked runs a test with a client whose hooks are recorded.
func hooked(t *testing.T, s lease.Store,
	f func(c *rowlock.Client, h told, log *clienttest.Journal),
) {
	t.Helper()
	h, log := make(told, 10_000), new(clienttest.Journal)
	cfg := &rowlock.Config{Hooks: h.hooks(), Logger: slog.New(slog.NewTextHandler(log, nil))}
	f(clienttest.Client(t, s, cfg), h, log) // with a reaper: no hook is called for its lock
}

func TestHooksReportLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		hooked(t, s, func(c *rowlock.Client, h told, log *clienttest.Journal) {
			l := clienttest.Take(t, c, "k", rowlock.Note("me"))
			h.expect(t, "acquired k 1 after 0s")
			_, _ = c.TryLock(t.Context(), "k")
			h.expect(t, `contended k "me" 30s`)
			time.Sleep(time.Minute)
			_ = l.Unlock(t.Context())
			_ = l.Unlock(t.Context())
			h.expect(t, "released k 1 after 1m0s")

			clienttest.Another(t, s, "k", clienttest.TTL)
			if _, err := c.Lock(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			polls := 0
			for len(h) > 1 {
				if tell := <-h; strings.HasPrefix(tell, `contended k "another"`) {
					polls++
				}
			}
			if polls != 1 { // later polls do not count as contended
				t.Errorf("%d calls for attempts that found the key held", polls)
			}
			h.expect(t, "acquired k 3 after 30s")
			time.Sleep(time.Hour) // the reaper's lock comes and is renewed
			h.expect(t)
			if s := log.String(); s != "" {
				t.Errorf("logged: %s", s)
			}
		})
	})
}

func TestHooksReportLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		hooked(t, s, func(c *rowlock.Client, h told, log *clienttest.Journal) {
			clienttest.Take(t, c, "left alone", rowlock.NoRenew())
			clienttest.Take(t, c, "held too long", rowlock.MaxHold(time.Second))
			taken := clienttest.Take(t, c, "taken over")
			h.expect(t, "acquired left alone 1 after 0s", "acquired held too long 1 after 0s",
				"acquired taken over 1 after 0s")
			time.Sleep(time.Second)
			h.expect(t, "lost held too long 1: "+rowlock.ErrMaxHold.Error())
			time.Sleep(clienttest.Trust)
			h.expect(t, "lost left alone 1: "+rowlock.ErrLost.Error())
			if n := strings.Count(log.String(), "level=WARN"); n != 2 {
				t.Errorf("%d warnings of 2 locks lost: %s", n, log.String())
			}

			s.Expire("taken over")
			clienttest.Another(t, s, "taken over", clienttest.TTL)
			clienttest.WantIs(t, "Unlock", taken.Unlock(t.Context()), rowlock.ErrLost)
			h.expect(t, "lost taken over 1: "+rowlock.ErrLost.Error())
		})
	})
}

// A lock that a transaction released is not lost. No hook is called for the reaper's own lock.
func TestHooksDoNotReportWhatIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewFencingStore()
		hooked(t, s, func(c *rowlock.Client, h told, log *clienttest.Journal) {
			l := clienttest.Take(t, c, "k")
			h.expect(t, "acquired k 1 after 0s")
			tx := s.Begin()
			if err := l.UnlockIn(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			tx.Commit()
			<-l.Context().Done()
			h.expect(t, "released k 1 after 750ms")
			clienttest.WantIs(t, "Unlock", l.Unlock(t.Context()))
			h.expect(t)

			time.Sleep(10 * time.Minute)
			records, err := s.Inspect(t.Context(), lease.Filter{Held: true})
			if err != nil || len(records) != 1 {
				t.Fatalf("held: %+v, %v; want the reaper's lock", records, err)
			}
			s.Expire(records[0].Key)
			clienttest.Another(t, s, records[0].Key, time.Hour)
			time.Sleep(10 * time.Minute)
			h.expect(t)
			if s := log.String(); s != "" {
				t.Errorf("logged: %s", s)
			}
		})
	})
}

func TestHooksReportFailedRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		began := time.Now()
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if time.Since(began) < 11*time.Second {
				return nil, clienttest.ErrDown
			}
			return s.Store.Renew(ctx, reqs)
		}
		hooked(t, s, func(c *rowlock.Client, h told, log *clienttest.Journal) {
			clienttest.Take(t, c, "a")
			clienttest.Take(t, c, "b")
			time.Sleep(time.Minute / 2)
			h.expect(t, "acquired a 1 after 0s", "acquired b 1 after 0s",
				"failed 2: "+clienttest.ErrDown.Error())
			if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, "leases=2") {
				t.Errorf("logged: %s", s)
			}
		})
	})
}

func TestHooksReportSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		began := time.Now()
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := s.Store.Renew(ctx, reqs)
			if time.Since(began) > 15*time.Second {
				answers[0].Clock += 5 * time.Second
			}
			return answers, err
		}
		hooked(t, s, func(c *rowlock.Client, h told, log *clienttest.Journal) {
			watched := clienttest.Take(t, c, "watched", rowlock.NoRenew())
			clienttest.Take(t, c, "k")
			h.expect(t, "acquired watched 1 after 0s", "acquired k 1 after 0s")
			time.Sleep(21 * time.Second)
			h.expect(t, "skewed 5s")
			if got := watched.Deadline().Sub(began); got != clienttest.Trust-5*time.Second {
				t.Errorf("the deadline is %v after the grant", got)
			}
			if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, "ahead=5s") {
				t.Errorf("logged: %s", s)
			}
		})
	})
}

// Every hook by reflection, so that Then cannot forget one that is added.
func TestThenCallsBothHooksInTheirOrder(t *testing.T) {
	var said []string
	first, second := speaking("first", &said), speaking("second", &said)
	for name, hooks := range map[string]rowlock.Hooks{
		"first second": first.Then(second), "first": first.Then(rowlock.Hooks{}),
		"second": rowlock.Hooks{}.Then(second),
	} {
		all := reflect.ValueOf(hooks)
		for i := range all.NumField() {
			said = nil
			args := make([]reflect.Value, all.Field(i).Type().NumIn())
			for j := range args {
				args[j] = reflect.Zero(all.Field(i).Type().In(j))
			}
			all.Field(i).Call(args)
			if got := strings.Join(said, " "); got != name {
				t.Errorf("%s: %q were called, want %q", all.Type().Field(i).Name, got, name)
			}
		}
	}
	nothing := reflect.ValueOf(rowlock.Hooks{}.Then(rowlock.Hooks{}))
	if !nothing.IsZero() {
		t.Error("two empty Hooks have made one that is not")
	}
}

// speaking returns hooks each of which adds who to said.
func speaking(who string, said *[]string) (h rowlock.Hooks) {
	all := reflect.ValueOf(&h).Elem()
	for i := range all.NumField() {
		f := all.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value {
			*said = append(*said, who)
			return nil
		}))
	}
	return h
}
