package rowlock_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"pgregory.net/rapid"
)

// times draws durations of every order of magnitude, and often one next to a limit.
func times(t *rapid.T, label string, from, to time.Duration) time.Duration {
	between := func(a, b time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(int64(a), int64(b)), func(n int64) time.Duration { return time.Duration(n) })
	}
	near := min(to-from, 3)
	return rapid.OneOf(between(from, to), between(from, from+near), between(to-near, to)).Draw(t, label)
}

// However close to its limits the configuration is, a call with a TTL of its own stays within them.
func TestTTLOfACallKeepsTheRelations(t *testing.T) {
	const shortest = 100 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		longest := rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 1000 * time.Hour, math.MaxInt64}).Draw(t, "longest")
		cfg := rowlock.Config{TTL: times(t, "TTL", shortest, longest)}
		cfg.Margin = times(t, "Margin", 1, cfg.TTL-2)
		cfg.RenewEvery = times(t, "RenewEvery", 1, cfg.TTL-cfg.Margin-1)
		asked := times(t, "asked", shortest, longest)

		ttl, margin, every, err := rowlock.Times(cfg, rowlock.TTL(asked))
		if err != nil {
			t.Fatal(err)
		}
		if ttl != asked || margin < 0 || every <= 0 || every >= ttl-margin {
			t.Errorf("TTL %v, margin %v, every %v", ttl, margin, every)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		for name, o := range map[string]struct {
			option rowlock.Option
			says   []string
		}{
			"TTL 0":            {rowlock.TTL(0), []string{"TTL (0s)", "100ms"}},
			"TTL too short":    {rowlock.TTL(99 * time.Millisecond), []string{"TTL (99ms)", "100ms"}},
			"TTL negative":     {rowlock.TTL(-time.Hour), []string{"TTL (-1h0m0s)", "100ms"}},
			"MaxHold tiny":     {rowlock.MaxHold(time.Millisecond), []string{"MaxHold (1ms)", "100ms"}},
			"MaxHold negative": {rowlock.MaxHold(-1), []string{"MaxHold (-1ns)", "100ms"}},
			"nil":              {nil, []string{"option", "nil"}},
			"Priority 0":       {rowlock.Priority(0), []string{"Priority (0)", "1 to 10"}},
			"Priority 11":      {rowlock.Priority(11), []string{"Priority (11)", "1 to 10"}},
			"Note too long":    {rowlock.Note(strings.Repeat("é", 128)), []string{"Note", "256", "255"}},
			"Note not UTF-8":   {rowlock.Note("caf\xe9"), []string{"Note", `caf\xe9`, "UTF-8"}},
			"Note with NUL":    {rowlock.Note("a\x00b"), []string{"Note", `a\x00b`, "NUL"}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.TryLock(ctx, "k", o.option)
			wantIs(t, name+": TryLock", err, rowlock.ErrConfig)
			for _, s := range o.says {
				if err != nil && !strings.Contains(err.Error(), s) {
					t.Errorf("%s: %q does not say %q", name, err, s)
				}
			}
			_, err = c.Lock(ctx, "k", rowlock.NoRenew(), o.option)
			wantIs(t, name+": Lock", err, rowlock.ErrConfig)
			wantIs(t, name+": Do", c.Do(ctx, "k", func(context.Context, *rowlock.Lock) error { return nil }, o.option), rowlock.ErrConfig)
		}
		if acquires, _, _ := s.asked(); acquires != 0 {
			t.Errorf("%d requests", acquires)
		}
		take(t, c, "k", rowlock.TTL(100*time.Millisecond), rowlock.MaxHold(100*time.Millisecond), rowlock.Priority(1),
			rowlock.Priority(10), rowlock.Note(""), rowlock.Note("a"+strings.Repeat("é", 127)))
	})
}

func TestOptionsAreOfOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		began := time.Now()
		one := take(t, c, "one", rowlock.TTL(10*time.Second), rowlock.Note("one"), rowlock.NoRenew())
		two := take(t, c, "two")
		if r := record(t, s, "one"); r.Note != "one" || r.Remaining != 10*time.Second {
			t.Errorf("with options the row is %+v", r)
		}
		if r := record(t, s, "two"); r.Note != "" || r.Remaining != ttl {
			t.Errorf("without options the row is %+v", r)
		}
		endsAt(t, one, began, 9*time.Second, rowlock.ErrLost)
		time.Sleep(10 * ttl)
		alive(t, two)
	})
}

// A TTL of a call's own is renewed in its own rhythm.
func TestTTLOfACallIsRenewedInProportion(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		for _, asked := range []time.Duration{100 * time.Millisecond, time.Second, time.Hour} {
			l := take(t, c, "k", rowlock.TTL(asked))
			_, before, _ := s.asked()
			time.Sleep(30 * asked)
			alive(t, l)
			if _, after, _ := s.asked(); after-before < 85 || after-before > 105 {
				t.Errorf("TTL %v: %d renewals in 30 TTL, want about 95", asked, after-before)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMaxHoldOfACallOverridesTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{MaxHold: time.Minute}
		cfg.Reaper.Off = true
		c := client(t, newScript(), cfg)
		began := time.Now()
		short, usual, long := take(t, c, "a", rowlock.MaxHold(time.Second)), take(t, c, "b"), take(t, c, "c", rowlock.MaxHold(10*time.Minute))
		endsAt(t, short, began, time.Second, rowlock.ErrMaxHold)
		endsAt(t, usual, began, time.Minute, rowlock.ErrMaxHold)
		endsAt(t, long, began, 10*time.Minute, rowlock.ErrMaxHold)
	})
}
