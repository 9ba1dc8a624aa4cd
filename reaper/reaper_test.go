package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/reaper"
)

func TestOneOfManyProcessesSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		for i := range 10 {
			name := fmt.Sprint("process ", i)
			defer reaper.Start(store.as(name), seat.elect(name), reaper.Config{}, quiet(t)).Stop()
			time.Sleep(7 * time.Second)
		}
		time.Sleep(time.Hour)
		sweeps := store.all()
		for i, s := range sweeps {
			if s.by != sweeps[0].by {
				t.Errorf("%s sweeps, and so did %s", s.by, sweeps[0].by)
			}
			if i == 0 {
				continue
			}
			if gap := s.at.Sub(sweeps[i-1].at); gap < 54*time.Second || gap > time.Minute {
				t.Errorf("swept again after %v, want a minute less at most a tenth", gap)
			}
		}
		if len(sweeps) < 60 {
			t.Errorf("%d sweeps in an hour", len(sweeps))
		}
	})
}

// New of a client refuses it; who starts a Reaper by himself has no error to look at.
func TestANegativePeriodIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		defer reaper.Start(store.as("us"), seat.elect("us"), reaper.Config{Every: -time.Second}, quiet(t)).Stop()
		time.Sleep(time.Hour)
		if n := len(store.all()); n < 60 || n > 67 {
			t.Errorf("%d sweeps in an hour", n)
		}
	})
}

func TestNobodySweepsWhileTheOfficeIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		if _, _, err := seat.elect("elsewhere")(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer reaper.Start(store.as("us"), seat.elect("us"), reaper.Config{Every: time.Second}, quiet(t)).Stop()
		time.Sleep(time.Minute)
		if bids, resigned := seat.state(); bids < 60 || resigned != "[]" {
			t.Errorf("%d bids in 60 periods; resigned: %s", bids, resigned)
		}
		if sweeps := store.all(); len(sweeps) != 0 {
			t.Errorf("swept: %+v", sweeps)
		}
	})
}

func TestAnotherTakesOverFromAStoppedSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		first := reaper.Start(store.as("first"), seat.elect("first"), reaper.Config{}, quiet(t))
		time.Sleep(time.Minute)
		second := reaper.Start(store.as("second"), seat.elect("second"), reaper.Config{}, quiet(t))
		defer second.Stop()
		time.Sleep(10 * time.Minute)
		first.Stop()
		stopped := time.Now()
		if _, resigned := seat.state(); resigned != "[first]" {
			t.Errorf("resigned: %s", resigned)
		}
		time.Sleep(time.Minute)
		sweeps := store.all()
		if last := sweeps[len(sweeps)-1]; last.by != "second" || last.at.Before(stopped) {
			t.Errorf("the last sweep is %s's, %v after the first's end", last.by, last.at.Sub(stopped))
		}
	})
}

func TestSweepEndsWithTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seat office
		var log journal
		ended := make(chan error, 10)
		store := sweeper(func(ctx context.Context, _ lease.SweepOptions) (int64, error) {
			<-ctx.Done() // a large table
			ended <- ctx.Err()
			return 3, ctx.Err()
		})
		defer reaper.Start(store, seat.elect("us"), reaper.Config{Every: time.Second}, log.logger()).Stop()
		time.Sleep(time.Minute)
		if len(ended) != 0 {
			t.Fatal("the sweep ended before it had to")
		}
		seat.lose("")
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatalf("%d sweeps ended with the election", len(ended))
		}
		if s := log.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "rows=3") {
			t.Errorf("logged: %s", s)
		}
		time.Sleep(time.Second)
		if bids, _ := seat.state(); bids != 2 {
			t.Errorf("%d bids; the office is free again", bids)
		}
	})
}

// The office was lost between two sweeps, to another: who has lost it must not sweep on.
func TestSweeperThatWasDeposedBidsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		defer reaper.Start(store.as("us"), seat.elect("us"), reaper.Config{Every: time.Minute}, quiet(t)).Stop()
		time.Sleep(time.Minute)
		seat.lose("elsewhere")
		time.Sleep(10 * time.Minute)
		if n := len(store.all()); n != 1 {
			t.Errorf("%d sweeps", n)
		}
		if bids, _ := seat.state(); bids < 10 {
			t.Errorf("%d bids", bids)
		}
	})
}

func TestStopEndsASweepUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seat office
		store := sweeper(func(ctx context.Context, _ lease.SweepOptions) (int64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		r := reaper.Start(store, seat.elect("us"), reaper.Config{Every: time.Second}, quiet(t))
		time.Sleep(time.Minute)
		began := time.Now()
		r.Stop()
		r.Stop() // twice is harmless
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		if _, resigned := seat.state(); resigned != "[us]" {
			t.Errorf("resigned: %s", resigned)
		}
	})
}

func TestStopBeforeTheFirstSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		reaper.Start(store.as("us"), seat.elect("us"), reaper.Config{}, quiet(t)).Stop()
		if bids, resigned := seat.state(); bids != 0 || resigned != "[]" || len(store.all()) != 0 {
			t.Errorf("%d bids, resigned: %s, swept: %v", bids, resigned, store.all())
		}
	})
}

func TestFailuresAreLoggedAndNotFatal(t *testing.T) {
	failed := errors.New("no privilege to delete")
	t.Run("of a sweep, after which another may try", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var seat office
			var log journal
			sweeps := make(chan int, 100)
			store := sweeper(func(context.Context, lease.SweepOptions) (int64, error) {
				sweeps <- 1
				return 0, failed
			})
			defer reaper.Start(store, seat.elect("us"), reaper.Config{Every: time.Second}, log.logger()).Stop()
			time.Sleep(10 * time.Second)
			bids, resigned := seat.state()
			if len(sweeps) < 10 || bids != len(sweeps) || strings.Count(resigned, "us") != len(sweeps) {
				t.Errorf("%d sweeps, %d bids, resigned: %s", len(sweeps), bids, resigned)
			}
			if n := strings.Count(log.String(), failed.Error()); n != len(sweeps) {
				t.Errorf("%d failures, %d told: %s", len(sweeps), n, log.String())
			}
		})
	})
	t.Run("of a bid", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var store recorder
			var seat office
			var log journal
			began := time.Now()
			bid := seat.elect("us")
			elect := func(ctx context.Context) (context.Context, func(), error) {
				if time.Since(began) < 5*time.Second {
					return nil, nil, failed
				}
				return bid(ctx)
			}
			defer reaper.Start(store.as("us"), elect, reaper.Config{Every: time.Second}, log.logger()).Stop()
			time.Sleep(10 * time.Second)
			if n := len(store.all()); n < 4 {
				t.Errorf("%d sweeps after the failures", n)
			}
			if n := strings.Count(log.String(), "level=WARN"); n < 4 || n > 6 {
				t.Errorf("%d warnings: %s", n, log.String())
			}
		})
	})
}

func TestConfigIsPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		config reaper.Config
		want   lease.SweepOptions
	}{
		"defaults": {reaper.Config{}, lease.SweepOptions{Retention: time.Hour, Batch: 200, Pause: 5 * time.Millisecond}},
		"said":     {reaper.Config{Retention: time.Minute, Batch: 7, Pause: -1}, lease.SweepOptions{Retention: time.Minute, Batch: 7, Pause: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store recorder
				var seat office
				r := reaper.Start(store.as("us"), seat.elect("us"), c.config, quiet(t))
				defer r.Stop()
				if _, err := r.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := store.all()[0].opts; got != c.want {
					t.Errorf("swept with %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestOnceSweepsAndResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store recorder
		var seat office
		r := reaper.Start(store.as("us"), seat.elect("us"), reaper.Config{}, quiet(t))
		defer r.Stop()
		if n, err := r.Once(t.Context()); n != 1 || err != nil {
			t.Errorf("Once: %d, %v", n, err)
		}
		if _, resigned := seat.state(); resigned != "[us]" {
			t.Errorf("resigned: %s", resigned)
		}
		time.Sleep(time.Minute) // the loop is in office now
		if n, err := r.Once(t.Context()); n != 0 || !errors.Is(err, lease.ErrHeld) {
			t.Errorf("Once beside another: %d, %v", n, err)
		}
	})
}

func TestOnlyRowsDeadForLongerThanTheRetentionGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var seat office
		defer reaper.Start(store, seat.elect("us"), reaper.Config{Every: time.Minute, Retention: time.Hour}, quiet(t)).Stop()
		for _, ttl := range []time.Duration{time.Minute, 2 * time.Hour, 24 * time.Hour} {
			req := lease.AcquireRequest{Key: ttl.String(), Owner: lease.NewOwner(), TTL: ttl}
			if _, err := store.Acquire(t.Context(), []lease.AcquireRequest{req}); err != nil {
				t.Fatal(err)
			}
		}
		for after, want := range []int{3, 2, 2, 1, 1} { // rows left after so many hours and three minutes
			if after == 0 {
				time.Sleep(3 * time.Minute)
			} else {
				time.Sleep(time.Hour)
			}
			if got := store.Rows(); got != want {
				t.Errorf("%d rows after %d hours, want %d", got, after, want)
			}
		}
	})
}
