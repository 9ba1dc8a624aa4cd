package election_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

func TestObserveTellsEachLeader(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, stop := context.WithCancel(t.Context())
		var seen []lease.Token
		done := make(chan struct{})
		go func() {
			defer close(done)
			for term, err := range election.Observe(ctx, c, "boss") {
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, term.Number)
			}
		}()
		time.Sleep(soon)
		a := stand(t, clienttest.Client(t, s, nil))
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		time.Sleep(soon)
		a.retire(first)
		second := b.next(soon)
		time.Sleep(soon)
		b.retire(second)
		time.Sleep(soon)
		stop()
		<-done
		// That there is no leader between two is brief, and may be missed.
		seen = slices.DeleteFunc(seen[1:], func(n lease.Token) bool { return n == 0 })
		if want := []lease.Token{first.term, second.term}; !slices.Equal(seen, want) {
			t.Errorf("observed %v, want %v", seen, want)
		}
	})
}

func TestLeaderNamesTheLeader(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		term, err := election.Leader(t.Context(), c, "boss")
		if err != nil || !term.IsVacant() {
			t.Errorf("before: %+v, %v", term, err)
		}
		cfg := &rowlock.Config{Identity: "web-1", Reaper: rowlock.ReaperConfig{Off: true}}
		a := stand(t, clienttest.Client(t, s, cfg), election.With(rowlock.Note("region eu")))
		l := a.next(0)
		time.Sleep(time.Minute)
		term, err = election.Leader(t.Context(), c, "boss")
		if err != nil || term.Number != l.term || term.Identity != "web-1" ||
			term.Note != "region eu" || term.Age != time.Minute ||
			term.Remaining <= 0 || term.Remaining > clienttest.TTL {
			t.Errorf("%+v, %v", term, err)
		}
		s.Expire(election.Key("boss")) // its process has died
		if term, err = election.Leader(t.Context(), c, "boss"); err != nil || !term.IsVacant() {
			t.Errorf("after the expiry: %+v, %v", term, err)
		}
		a.retire(l)
		if term, err = election.Leader(t.Context(), c, "boss"); err != nil || !term.IsVacant() {
			t.Errorf("after the end: %+v, %v", term, err)
		}
	})
}

// A loop that takes its time gets the state as it is then, and not a backlog.
func TestASlowObserverSkipsStates(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		n := 0
		for term, err := range election.Observe(ctx, c, "boss") {
			switch n++; n {
			case 1:
				for range 100 {
					l := clienttest.Take(t, c, election.Key("boss"))
					time.Sleep(soon)
					clienttest.Unlock(t, l)
				}
				clienttest.Another(t, s, election.Key("boss"), time.Hour)
				time.Sleep(soon)
			case 2:
				if term.Number != 101 || err != nil {
					t.Errorf("%+v, %v", term, err)
				}
				stop()
			default:
				t.Fatalf("%d states", n)
			}
		}
	})
}

// The database is away for a while. The observer is told once, and then what there is.
func TestObserveOutlivesAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		var away atomic.Bool
		s.OnInspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			if away.Load() {
				return nil, clienttest.ErrDown
			}
			return s.Store.Inspect(ctx, f)
		}
		c := clienttest.Client(t, s, nil)
		l := clienttest.Another(t, s, election.Key("boss"), time.Hour)
		var told []string
		for term, err := range election.Observe(t.Context(), c, "boss") {
			told = append(told, fmt.Sprint(term.Number, " ", err))
			switch len(told) {
			case 1:
				away.Store(true)
				time.AfterFunc(time.Minute, func() { away.Store(false) })
			case 2:
				if !errors.Is(err, clienttest.ErrDown) {
					t.Error(err)
				}
			}
			if len(told) == 3 {
				break
			}
		}
		now := fmt.Sprint(l.Token, " ", nil)
		if want := []string{now, fmt.Sprint("0 ", clienttest.ErrDown), now}; !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
	})
}

func TestObserveEndsWithItsClient(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, _ *rowlock.Client, s *clienttest.Script) {
		c := clienttest.Client(t, s, nil)
		var last error
		for _, err := range election.Observe(t.Context(), c, "boss") {
			if last = err; err == nil {
				_ = c.Close()
			}
		}
		clienttest.WantIs(t, "the last pair", last, rowlock.ErrClosed)
		_, err := election.Leader(t.Context(), c, "boss")
		clienttest.WantIs(t, "Leader", err, rowlock.ErrClosed)
	})
}

func TestAThousandObserversCostOnePoller(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var told atomic.Int64
		for i := range 1000 {
			all.Go(func() {
				for range election.Observe(ctx, c, fmt.Sprint("boss ", i%400)) {
					told.Add(1)
				}
			})
		}
		time.Sleep(soon)
		before := s.Polled()
		time.Sleep(time.Minute)
		if n := s.Polled() - before; n < 200 || n > 280 {
			t.Errorf("%d reads in a minute, want about 240", n)
		}
		if told.Load() != 1000 {
			t.Errorf("%d states, want one for each observer", told.Load())
		}
		stop()
		all.Wait()
		time.Sleep(time.Minute)
		before = s.Polled()
		time.Sleep(time.Minute)
		if n := s.Polled() - before; n > 0 {
			t.Errorf("%d reads for no observer", n)
		}
	})
}
