package clienttest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
)

// handler is a log made of one function. Whether it is enabled is the user's code too.
type handler func(line string)

func (h handler) Enabled(context.Context, slog.Level) bool { h("enabled?"); return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler       { h("attributes"); return h }
func (h handler) WithGroup(string) slog.Handler            { h("a group"); return h }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	h(line)
	return nil
}

// blocking are configurations whose users' code waits until gate is closed, by what it is. calls
// has room for one.
func blocking(gate <-chan struct{}, calls chan<- struct{}) map[string]*rowlock.Config {
	block := func() {
		select {
		case calls <- struct{}{}:
		default:
		}
		<-gate
	}
	return map[string]*rowlock.Config{
		"Logger": {Logger: slog.New(handler(func(string) { block() }))},
		"Lost": {Hooks: rowlock.Hooks{
			Lost: func(context.Context, string, lease.Token, error) { block() },
		}},
		"Renewed": {Hooks: rowlock.Hooks{
			Renewed: func(context.Context, int, time.Duration) { block() },
		}},
		"RenewFailed": {Hooks: rowlock.Hooks{
			RenewFailed: func(context.Context, error, int) { block() },
		}},
		"Skewed": {Hooks: rowlock.Hooks{Skewed: func(context.Context, time.Duration) { block() }}},
		"Released by Close": {Hooks: rowlock.Hooks{
			Released: func(context.Context, string, lease.Token, time.Duration) { block() },
		}},
		"Releasing by Close": {Hooks: rowlock.Hooks{
			Releasing: func(context.Context, string, lease.Token) { block() },
		}},
	}
}

// A lock ends by MaxHold and a renewal fails, which the log and hooks are told of, and they do not
// return. Every other lock is renewed as before, and ends at its deadline when the store is away.
// Close returns.
func TestUserCodeThatBlocksHoldsUpNoOtherLockAndNoClose(t *testing.T) {
	for name := range blocking(nil, nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, calls := make(chan struct{}), make(chan struct{}, 1)
				defer close(gate)
				cfg := blocking(gate, calls)[name]
				cfg.Reaper.Off = true
				s := NewScript()
				began := time.Now()
				s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					answers, err := s.Store.Renew(ctx, reqs)
					switch after := time.Since(began); {
					case after > 20*TTL, after < TTL/2:
						return nil, ErrDown
					case after > TTL:
						for i := range answers {
							answers[i].Clock += 2 * time.Second
						}
					}
					return answers, err
				}
				c := Client(t, s, cfg)
				Take(t, c, "short", rowlock.MaxHold(time.Second))
				l := Take(t, c, "precious")
				time.Sleep(20 * TTL)
				WantAlive(t, l)
				deadline := l.Deadline()
				<-l.Context().Done()
				if late := time.Since(deadline); late > 0 {
					t.Errorf("the lock ended %v after its deadline", late)
				}
				Take(t, c, "of Close")
				closing := time.Now()
				if err := c.Close(); err != nil || time.Since(closing) > 3*time.Second {
					t.Errorf("Close returned %v after %v", err, time.Since(closing))
				}
				if IsHeld(t, s, "of Close") {
					t.Error("a key is held after Close")
				}
				if len(calls) == 0 {
					t.Error("nothing was called")
				}
			})
		})
	}
}

// An outage ends all locks of a process at once. Each line takes the log some time, and the hook
// too; all are told, and no context waits for it.
func TestTwentyThousandLossesAtOnceEndWithinTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := race.Few(2_000, 20_000)
		var mu sync.Mutex
		lines, hooks := 0, 0
		slow := func(count *int) {
			time.Sleep(200 * time.Microsecond)
			mu.Lock()
			*count++
			mu.Unlock()
		}
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}}
		cfg.Logger = slog.New(handler(func(line string) {
			if strings.HasPrefix(line, "rowlock: lock ended") {
				slow(&lines)
			}
		}))
		cfg.Hooks.Lost = func(context.Context, string, lease.Token, error) { slow(&hooks) }
		s := NewScript()
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, ErrDown
		}
		c := Client(t, s, cfg)
		locks := make([]*rowlock.Lock, n)
		for i := range locks {
			locks[i] = Take(t, c, "k/"+string(rune('a'+i%26))+time.Duration(i).String())
		}
		ends := locks[n-1].Deadline()
		time.Sleep(time.Until(ends))
		synctest.Wait()
		for _, l := range locks {
			if context.Cause(l.Context()) == nil {
				t.Fatalf("%s has not ended at its deadline", l.Key())
			}
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if lines != n || hooks != n || c.Stats().Untold != 0 {
			t.Errorf("%d lines and %d hooks of %d, %d dropped", lines, hooks, n, c.Stats().Untold)
		}
	})
}

// What does not fit is dropped, counted, and told when the log takes lines again.
func TestDroppedLinesAreCountedAndTold(t *testing.T) {
	race.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var lines []string
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}}
		cfg.Logger = slog.New(handler(func(line string) { <-gate; lines = append(lines, line) }))
		cfg.Hooks.Lost = func(context.Context, string, lease.Token, error) {}
		c := Client(t, NewScript(), cfg)
		const n = 1<<15 + 10 // each with a line and a hook
		for i := range n {
			Take(t, c, time.Duration(i).String(), rowlock.MaxHold(time.Second))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		dropped := c.Stats().Untold
		if dropped < 19 || dropped > 20 { // one may run
			t.Errorf("%d dropped of twice 10", dropped)
		}
		close(gate)
		synctest.Wait()
		want := "rowlock: log lines and calls of hooks were dropped, because the Logger or a hook did not return dropped="
		is := func(line string) bool { return strings.HasPrefix(line, want) }
		if !slices.ContainsFunc(lines, is) {
			t.Errorf("the log does not say %q; it ends with %q", want, lines[max(0, len(lines)-3):])
		}
	})
}

// The order in which a lock's events are told is the same where no caller waits for them.
func TestEndsThatNoCallerWaitsForAreToldInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		note := func(what, key string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what+" "+key)
		}
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}}
		cfg.Hooks = rowlock.Hooks{
			Acquired:  func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) { note("acquired", key) },
			Releasing: func(_ context.Context, key string, _ rowlock.Token) { note("releasing", key) },
			Released:  func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) { note("released", key) },
			Lost:      func(_ context.Context, key string, _ rowlock.Token, _ error) { note("lost", key) },
			Forced:    func(_ context.Context, f lease.Forced) { note("forced", f.Key) },
		}
		c := Client(t, NewScript(), cfg)
		Take(t, c, "taken")
		if _, err := c.ForceRelease(t.Context(), "taken", rowlock.Force{Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(TTL)
		Take(t, c, "kept")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"acquired taken", "lost taken", "forced taken", "acquired kept", "releasing kept", "released kept",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
