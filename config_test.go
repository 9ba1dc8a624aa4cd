package rowlock_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"pgregory.net/rapid"
)

// A setting that makes no sense is refused, and the message names what stands against what.
func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  rowlock.Config
		says []string
	}{
		"TTL too short":            {rowlock.Config{TTL: 99 * time.Millisecond}, []string{"TTL", "99ms", "100ms"}},
		"TTL negative":             {rowlock.Config{TTL: -time.Second}, []string{"TTL", "-1s"}},
		"Margin negative":          {rowlock.Config{Margin: -1}, []string{"Margin", "-1ns"}},
		"Margin as long as TTL":    {rowlock.Config{TTL: time.Second, Margin: time.Second}, []string{"Margin (1s)", "TTL (1s)"}},
		"Margin above default TTL": {rowlock.Config{Margin: time.Minute}, []string{"Margin (1m0s)", "TTL (30s)"}},
		"RenewEvery negative":      {rowlock.Config{RenewEvery: -1}, []string{"RenewEvery", "-1ns"}},
		"RenewEvery as TTL":        {rowlock.Config{TTL: time.Second, RenewEvery: time.Second}, []string{"RenewEvery (1s)", "TTL (1s)"}},
		"RenewEvery as the deadline": {
			rowlock.Config{TTL: 10 * time.Second, Margin: 3 * time.Second, RenewEvery: 7 * time.Second},
			[]string{"RenewEvery (7s)", "TTL", "Margin", "10s", "3s"},
		},
		"Margin leaves no time for the default RenewEvery": {
			rowlock.Config{TTL: 30 * time.Second, Margin: 25 * time.Second},
			[]string{"RenewEvery (10s)", "30s", "25s"},
		},
		"MaxHold negative":       {rowlock.Config{MaxHold: -1}, []string{"MaxHold", "-1ns"}},
		"MaxHold tiny":           {rowlock.Config{MaxHold: time.Millisecond}, []string{"MaxHold", "1ms", "100ms"}},
		"PollMin negative":       {rowlock.Config{PollMin: -1}, []string{"PollMin", "-1ns"}},
		"PollMax negative":       {rowlock.Config{PollMax: -1}, []string{"PollMax", "-1ns"}},
		"PollMin above PollMax":  {rowlock.Config{PollMin: 2 * time.Second, PollMax: time.Second}, []string{"PollMin (2s)", "PollMax (1s)"}},
		"PollMax below default":  {rowlock.Config{PollMax: time.Millisecond}, []string{"PollMin (10ms)", "PollMax (1ms)"}},
		"Strategy unknown":       {rowlock.Config{Strategy: 7}, []string{"Strategy", "7"}},
		"Lanes negative":         {rowlock.Config{Lanes: -1}, []string{"Lanes", "-1"}},
		"Reaper.Every negative":  {rowlock.Config{Reaper: rowlock.ReaperConfig{Every: -1}}, []string{"Reaper.Every", "-1ns"}},
		"Reaper.Retention so":    {rowlock.Config{Reaper: rowlock.ReaperConfig{Retention: -1}}, []string{"Reaper.Retention", "-1ns"}},
		"Reaper negative if Off": {rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true, Every: -1}}, []string{"Reaper.Every"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rowlock.New(memstore.New(), &c.cfg)
			wantIs(t, "New", err, rowlock.ErrConfig)
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
			wantIs(t, "Open", err, rowlock.ErrConfig)
		})
	}
}

func TestFairNeedsAQueue(t *testing.T) {
	_, err := rowlock.New(bare{memstore.New()}, &rowlock.Config{Fair: true})
	wantIs(t, "New", err, rowlock.ErrUnsupported)
}

func TestNothingToLockIn(t *testing.T) {
	_, err := rowlock.New(nil, nil)
	wantIs(t, "New(nil)", err, rowlock.ErrConfig)
	for _, db := range []rowlock.DB{nil, (*sql.DB)(nil), (*sqlx.DB)(nil)} {
		_, err = rowlock.Open(db, sqlite.New(), nil)
		wantIs(t, "Open(nil db)", err, rowlock.ErrConfig)
		_, err = rowlock.OpenTable(db, sqlite.New(), nil)
		wantIs(t, "OpenTable(nil db)", err, rowlock.ErrConfig)
		_, err = forupdate.NewLocker(db, sqlite.New())
		wantIs(t, "NewLocker(nil db)", err, rowlock.ErrConfig)
		_, err = once.New(db, sqlite.New(), nil)
		wantIs(t, "once.New(nil db)", err, rowlock.ErrConfig)
		_, err = optimistic.New(db, sqlite.New())
		wantIs(t, "optimistic.New(nil db)", err, rowlock.ErrConfig)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = rowlock.Open(db, nil, nil)
	wantIs(t, "Open(nil dialect)", err, rowlock.ErrConfig)
	_, err = rowlock.New((*memstore.Store)(nil), nil)
	wantIs(t, "New(nil *Store)", err, rowlock.ErrConfig)
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

// Whatever TTL is asked for, the defaults of the rest go with it.
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
			l := take(t, c, "k")
			if left := time.Until(l.Deadline()); left != trust {
				t.Errorf("the deadline is %v away, want %v", left, trust)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A client must not notice what its maker does with the Config afterwards.
func TestConfigIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{TTL: time.Minute}
		c := client(t, memstore.New(), cfg)
		cfg.TTL = time.Second
		cfg.Hooks.Acquired = func(string, int64, time.Duration) { t.Error("a hook that was set later is called") }
		l := take(t, c, "k")
		if left := time.Until(l.Deadline()); left != 54*time.Second {
			t.Errorf("the deadline is %v away", left)
		}
	})
}

func TestConfiguredTimesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		cfg := &rowlock.Config{TTL: 20 * time.Second, Margin: 5 * time.Second, RenewEvery: 2 * time.Second, MaxHold: time.Minute}
		cfg.Reaper.Off = true
		c := client(t, s, cfg)
		began := time.Now()
		l := take(t, c, "k")
		if left := time.Until(l.Deadline()); left != 15*time.Second {
			t.Errorf("the deadline is %v away", left)
		}
		endsAt(t, l, began, time.Minute, rowlock.ErrMaxHold)
		if _, renewals, _ := s.asked(); renewals < 29 || renewals > 34 {
			t.Errorf("%d renewals in a minute", renewals)
		}
		if r := s.renewals[0]; r.TTL != 20*time.Second {
			t.Errorf("renewed for %v", r.TTL)
		}
		if err := c.Do(t.Context(), "other", func(context.Context, *rowlock.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
