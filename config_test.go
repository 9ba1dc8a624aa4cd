package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/memstore"
	"pgregory.net/rapid"
)

// A setting that makes no sense is refused, and the message names both values that contradict.
func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  rowlock.Config
		says []string
	}{
		"TTL too short": {
			rowlock.Config{TTL: 99 * time.Millisecond}, []string{"TTL", "99ms", "100ms"},
		},
		"TTL negative":    {rowlock.Config{TTL: -time.Second}, []string{"TTL", "-1s"}},
		"Margin negative": {rowlock.Config{Margin: -1}, []string{"Margin", "-1ns"}},
		"Margin as long as TTL": {
			rowlock.Config{TTL: time.Second, Margin: time.Second}, []string{"Margin (1s)", "TTL (1s)"},
		},
		"Margin above default TTL": {
			rowlock.Config{Margin: time.Minute}, []string{"Margin (1m0s)", "TTL (30s)"},
		},
		"RenewEvery negative": {rowlock.Config{RenewEvery: -1}, []string{"RenewEvery", "-1ns"}},
		"RenewEvery as TTL": {
			rowlock.Config{TTL: time.Second, RenewEvery: time.Second},
			[]string{"RenewEvery (1s)", "TTL (1s)"},
		},
		"RenewEvery as the deadline": {
			rowlock.Config{TTL: 10 * time.Second, Margin: 3 * time.Second, RenewEvery: 7 * time.Second},
			[]string{"RenewEvery (7s)", "TTL", "Margin", "10s", "3s"},
		},
		"Margin leaves no time for the default RenewEvery": {
			rowlock.Config{TTL: 30 * time.Second, Margin: 25 * time.Second},
			[]string{"RenewEvery (10s)", "30s", "25s"},
		},
		"MaxHold negative": {rowlock.Config{MaxHold: -1}, []string{"MaxHold", "-1ns"}},
		"MaxHold tiny": {
			rowlock.Config{MaxHold: time.Millisecond}, []string{"MaxHold", "1ms", "100ms"},
		},
		"PollMin negative": {rowlock.Config{PollMin: -1}, []string{"PollMin", "-1ns"}},
		"PollMax negative": {rowlock.Config{PollMax: -1}, []string{"PollMax", "-1ns"}},
		"PollMin above PollMax": {
			rowlock.Config{PollMin: 2 * time.Second, PollMax: time.Second},
			[]string{"PollMin (2s)", "PollMax (1s)"},
		},
		"PollMax below default": {
			rowlock.Config{PollMax: time.Millisecond}, []string{"PollMin (10ms)", "PollMax (1ms)"},
		},
		"Strategy unknown":     {rowlock.Config{Strategy: 7}, []string{"Strategy", "7"}},
		"Connections negative": {rowlock.Config{Connections: -1}, []string{"Connections", "-1"}},
		"Connections above what servers take": {
			rowlock.Config{Connections: math.MaxInt}, []string{"Connections (9223372036854775807)", "0 to 1000"},
		},
		"Reaper.Every negative": {
			rowlock.Config{Reaper: rowlock.ReaperConfig{Every: -1}}, []string{"Reaper.Every", "-1ns"},
		},
		"Reaper.Retention so": {
			rowlock.Config{Reaper: rowlock.ReaperConfig{Retention: -1}},
			[]string{"Reaper.Retention", "-1ns"},
		},
		"Reaper negative if Off": {
			rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true, Every: -1}}, []string{"Reaper.Every"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rowlock.New(memstore.New(), &c.cfg)
			clienttest.WantIs(t, "New", err, rowlock.ErrConfig)
			for _, s := range c.says {
				if err != nil && !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			db, openErr := sql.Open("sqlite", ":memory:")
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer db.Close()
			_, err = rowlock.Open(db, sqlite.New(), &c.cfg)
			clienttest.WantIs(t, "Open", err, rowlock.ErrConfig)
		})
	}
}

func TestFairNeedsAQueue(t *testing.T) {
	_, err := rowlock.New(clienttest.Bare{Store: memstore.New()}, &rowlock.Config{Fair: true})
	clienttest.WantIs(t, "New", err, rowlock.ErrUnsupported)
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct{ asked, ttl, margin, every time.Duration }{
		{0, 30 * time.Second, 3 * time.Second, 10 * time.Second},
		{time.Minute, time.Minute, 6 * time.Second, 20 * time.Second},
		{3 * time.Second, 3 * time.Second, 500 * time.Millisecond, time.Second},
		{300 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		ttl, margin, every, err := rowlock.Times(rowlock.Config{TTL: c.asked})
		if err != nil || ttl != c.ttl || margin != c.margin || every != c.every {
			t.Errorf("TTL %v: %v, margin %v, every %v, %v; want %+v", c.asked, ttl, margin, every, err, c)
		}
	}
}

// The other defaults fit any TTL.
func TestDefaultsFitAnyTTL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := times(t, "TTL", 100*time.Millisecond, 1<<62)
		ttl, margin, every, err := rowlock.Times(rowlock.Config{TTL: asked})
		if err != nil {
			t.Fatal(err)
		}
		if ttl != asked || margin <= 0 || every <= 0 || 2*every > ttl-margin {
			t.Errorf("TTL %v, margin %v, every %v: one failed renewal, and it is lost", ttl, margin, every)
		}
	})
}

func TestNilConfigAndZeroConfigAreTheDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cfg := range []*rowlock.Config{nil, {}} {
			c, err := rowlock.New(memstore.New(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			l := clienttest.Take(t, c, "k")
			if left := time.Until(l.Deadline()); left != clienttest.Trust {
				t.Errorf("the deadline is %v away, want %v", left, clienttest.Trust)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The client copies its Config: later changes of it have no effect.
func TestConfigIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{TTL: time.Minute}
		c := clienttest.Client(t, memstore.New(), cfg)
		cfg.TTL = time.Second
		cfg.Hooks.Acquired = func(context.Context, string, rowlock.Token, time.Duration) {
			t.Error("a hook that was set later is called")
		}
		l := clienttest.Take(t, c, "k")
		if left := time.Until(l.Deadline()); left != 54*time.Second {
			t.Errorf("the deadline is %v away", left)
		}
	})
}

func TestConfiguredTimesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		cfg := &rowlock.Config{
			TTL: 20 * time.Second, Margin: 5 * time.Second, RenewEvery: 2 * time.Second,
			MaxHold: time.Minute,
		}
		cfg.Reaper.Off = true
		c := clienttest.Client(t, s, cfg)
		began := time.Now()
		l := clienttest.Take(t, c, "k")
		if left := time.Until(l.Deadline()); left != 15*time.Second {
			t.Errorf("the deadline is %v away", left)
		}
		clienttest.WantEnd(t, l, began, time.Minute, rowlock.ErrMaxHold)
		if _, renewals, _ := s.Calls(); renewals < 29 || renewals > 34 {
			t.Errorf("%d renewals in a minute", renewals)
		}
		if r := s.Renewals[0]; r.TTL != 20*time.Second {
			t.Errorf("renewed for %v", r.TTL)
		}
		if err := c.Do(t.Context(), "other",
			func(context.Context, *rowlock.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// times draws durations of every order of magnitude, and often one next to a limit.
func times(t *rapid.T, label string, from, to time.Duration) time.Duration {
	between := func(a, b time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(int64(a), int64(b)),
			func(n int64) time.Duration { return time.Duration(n) })
	}
	near := min(to-from, 3)
	drawn := rapid.OneOf(between(from, to), between(from, from+near), between(to-near, to))
	return drawn.Draw(t, label)
}

// However close to its limits the configuration is, a call with a TTL of its own stays within them.
func TestTTLOfACallKeepsTheRelations(t *testing.T) {
	const shortest = 100 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		longest := rapid.SampledFrom([]time.Duration{
			time.Second, time.Hour, 1000 * time.Hour, math.MaxInt64,
		}).Draw(t, "longest")
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

// A client that is to hear of releases by notifications alone.
func TestTheLongestPausesBetweenPolls(t *testing.T) {
	for _, cfg := range []rowlock.Config{
		{PollMax: math.MaxInt64},
		{PollMin: math.MaxInt64, PollMax: math.MaxInt64},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg.Reaper.Off = true
			c := clienttest.Client(t, memstore.New(), &cfg)
			l := clienttest.Take(t, c, "k")
			waiting := clienttest.Wait(t, c, "k")
			clienttest.Unlock(t, l)
			clienttest.Unlock(t, (<-waiting).Lock)
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
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
			clienttest.WantIs(t, name+": TryLock", err, rowlock.ErrConfig)
			for _, s := range o.says {
				if err != nil && !strings.Contains(err.Error(), s) {
					t.Errorf("%s: %q does not say %q", name, err, s)
				}
			}
			_, err = c.Lock(ctx, "k", rowlock.NoRenew(), o.option)
			clienttest.WantIs(t, name+": Lock", err, rowlock.ErrConfig)
			clienttest.WantIs(t, name+": Do",
				c.Do(ctx, "k", func(context.Context, *rowlock.Lock) error { return nil }, o.option),
				rowlock.ErrConfig)
		}
		if acquires, _, _ := s.Calls(); acquires != 0 {
			t.Errorf("%d requests", acquires)
		}
		clienttest.Take(t, c, "k", rowlock.TTL(100*time.Millisecond),
			rowlock.MaxHold(100*time.Millisecond), rowlock.Priority(1),
			rowlock.Priority(10), rowlock.Note(""), rowlock.Note("a"+strings.Repeat("é", 127)))
	})
}

// FuzzConfig: any Config is refused with ErrConfig before anything is sent, or makes a client that
// locks.
func FuzzConfig(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, 0, uint8(0), "")
	f.Add(int64(math.MaxInt64), int64(1), int64(1), int64(0), int64(0), int64(math.MaxInt64), int64(-1), math.MaxInt, math.MaxInt, uint8(7), "web\t1")
	f.Add(int64(time.Second), int64(time.Second), int64(-1), int64(time.Minute), int64(1), int64(1), int64(1), -1, -1, uint8(255), "\xff")
	e := testdb.Kinds[0].Open(f)
	f.Fuzz(func(t *testing.T, ttl, margin, every, hold, idle, poll, evict int64, handOvers, connections int, flags uint8, identity string) {
		cfg := &rowlock.Config{
			TTL: time.Duration(ttl), Margin: time.Duration(margin), RenewEvery: time.Duration(every),
			MaxHold: time.Duration(hold), MaxIdle: time.Duration(idle), PollMin: time.Duration(poll), EvictAfter: time.Duration(evict),
			PollMax: time.Duration(evict), WatchEvery: time.Duration(idle), HandOvers: handOvers, Connections: connections, Identity: identity,
			Strategy: rowlock.Strategy(flags & 3), Hints: rowlock.Hints(flags >> 2 & 3), Fair: flags&16 != 0,
			Reaper: rowlock.ReaperConfig{Every: time.Duration(evict), Retention: time.Duration(hold), Batch: handOvers},
			Trace:  rowlock.TraceConfig{On: flags&32 != 0, Retention: time.Duration(hold), LongWait: time.Duration(every), Buffer: connections},
			Logger: slog.New(slog.DiscardHandler),
		}
		var before, after int
		version := func(n *int) {
			if err := e.DB.QueryRow(e.SQL(`SELECT count(*) + (SELECT sum(floor) FROM {rowlock_floor}) FROM {rowlock}`)).Scan(n); err != nil {
				t.Fatal(err)
			}
		}
		version(&before)
		c, err := rowlock.Open(e.DB, e.Dialect, cfg)
		if err != nil {
			version(&after)
			if !errors.Is(err, rowlock.ErrConfig) && !errors.Is(err, rowlock.ErrPool) || before != after || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v: %v, and the tables' sum went from %d to %d", cfg, err, before, after)
			}
			return
		}
		locksOnce(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// locksOnce fails unless a client locks. On a machine that is slow a short lease is lost, and a
// short MaxHold is over.
func locksOnce(t *testing.T, c *rowlock.Client) {
	l, err := c.TryLock(t.Context(), "k")
	if err == nil {
		err = l.Unlock(t.Context())
	}
	for _, slow := range []error{rowlock.ErrLost, rowlock.ErrMaxHold, rowlock.ErrIdle, rowlock.ErrHeld} {
		if errors.Is(err, slow) {
			return
		}
	}
	if err != nil {
		t.Error(err)
	}
}
