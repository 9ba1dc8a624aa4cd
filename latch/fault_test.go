package latch_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

// Whatever breaks, and wherever: what was told is so, and the repetition counts once.
func TestALostAnswerIsResolvedByRepetition(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		faults, log := &faultdb.Switch{}, &faultdb.Log{}
		db, err := faultdb.Open(r.Driver, r.Source, faultdb.Any(log, faults))
		ok(t, err)
		defer db.Close()
		s, clean := r.open(t, db, latch.Config{Sweep: -1, Connections: 1, NoHints: true}), r.process(t)
		whole := func(name string) error {
			l, err := s.Open(t.Context(), name, 2)
			if err == nil {
				err = l.CountDown(t.Context(), "x")
			}
			if err == nil {
				l, err = l.Reset(t.Context())
			}
			if err == nil {
				err = l.CountDown(t.Context(), "y")
			}
			return err
		}
		ok(t, whole("warm"))
		log.Reset()
		ok(t, whole("clean"))
		ops := log.Ops()
		for i, op := range ops {
			for how, fault := range map[string]faultdb.Fault{
				"before": faultdb.FailBeforeSend(), "after": faultdb.LoseReply(),
				"after, bad": faultdb.LoseReply().Reporting(driver.ErrBadConn),
			} {
				name := fmt.Sprintf("%d %s %s", i, op.Kind, how)
				counter := faultdb.NewCounter(faultdb.Nth(int64(i+1), fault))
				faults.Set(counter)
				err := whole(name)
				faults.Set(nil)
				if err != nil || counter.Faults() != 1 {
					t.Errorf("%s: %d faults; %v", name, counter.Faults(), err)
				}
				l := opened(t, clean, name, 2)
				if l.Generation() != 2 {
					t.Errorf("%s: generation %d", name, l.Generation())
				}
				wantCount(t, l, 1)
			}
		}
		t.Logf("%d operations", len(ops))
	})
}

// A database that answers nothing leaves an unknown outcome, which the next call resolves.
func TestACountWhoseAnswerNeverComesIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		faults := &faultdb.Switch{}
		db, err := faultdb.Open(r.Driver, r.Source, faults)
		ok(t, err)
		defer db.Close()
		s := r.open(t, db, latch.Config{Sweep: -1, Connections: 1, NoHints: true})
		l := opened(t, s, "l", 2)
		faults.Set(faultdb.Always(faultdb.LoseReply()))
		// On a busy machine the first may be over before anything is sent.
		for lasts := 200 * time.Millisecond; ; lasts *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			err = l.CountDown(ctx, "x")
			cancel()
			if errors.Is(err, lease.ErrUnknown) {
				break
			}
			if lasts > patience {
				t.Fatal(err)
			}
		}
		faults.Set(nil)
		ok(t, l.CountDown(t.Context(), "x"))
		wantCount(t, l, 1)
	})
}
