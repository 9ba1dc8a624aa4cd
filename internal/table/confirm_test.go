package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// deedOn does something on a store, and reports whether it was told that it is done.
type deedOn func(ctx context.Context, s *table.Store) (told bool, err error)

// inference is a call whose statement is executed while its reply is lost, so that the answer can
// only be found in the row.
type inference struct {
	name  string
	begin func(c *cell) deedOn
}

var inferences = []inference{
	{"acquire", func(c *cell) deedOn {
		req := lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl}
		return func(ctx context.Context, s *table.Store) (bool, error) {
			a, err := ask(ctx, s, req)
			return a.Granted, err
		}
	}},
	{"acquire a free row", func(c *cell) deedOn {
		release(c, c.clean, hold(c, c.clean, c.key))
		req := lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl}
		return func(ctx context.Context, s *table.Store) (bool, error) {
			a, err := ask(ctx, s, req)
			return a.Granted, err
		}
	}},
	{"acquire all", func(c *cell) deedOn {
		var reqs []lease.AcquireRequest
		for i := range 3 {
			key := fmt.Sprintf("%s/%d", c.key, i)
			release(c, c.clean, hold(c, c.clean, key))
			reqs = append(reqs, lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl})
		}
		return func(ctx context.Context, s *table.Store) (bool, error) {
			answers, err := s.AcquireAll(ctx, reqs)
			return err == nil && answers[0].Granted, err
		}
	}},
	{"claim", func(c *cell) deedOn {
		release(c, c.clean, hold(c, c.clean, c.key))
		req := lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl}
		return func(ctx context.Context, s *table.Store) (bool, error) {
			answers, err := s.Claim(ctx, []lease.AcquireRequest{req})
			return answers[0].Granted, err
		}
	}},
	{"hand over", func(c *cell) deedOn {
		h := lease.HandOver{From: hold(c, c.clean, c.key), To: lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl}}
		return func(ctx context.Context, s *table.Store) (bool, error) {
			answers, err := s.HandOver(ctx, []lease.HandOver{h})
			return answers[0].Granted, err
		}
	}},
	{"depart", func(c *cell) deedOn {
		l := hold(c, c.clean, c.key)
		return func(ctx context.Context, s *table.Store) (bool, error) {
			_, ok, err := s.Depart(ctx, l, 1)
			return ok, err
		}
	}},
	{"return", func(c *cell) deedOn {
		epoch, _, err := c.clean.Depart(c.Context(), hold(c, c.clean, c.key), 1)
		if err != nil {
			c.Fatal(err)
		}
		return func(ctx context.Context, s *table.Store) (bool, error) { return s.Return(ctx, c.key, 1, epoch) }
	}},
}

// A row can be read before its commit is durable, so that what is read resolves nothing: a commit
// after it does, once acknowledged. Here the one statement that makes it is never answered, and the
// call must not say that it knows.
func TestWhatIsOnlyReadIsToldAfterACommitThatWasAcknowledged(t *testing.T) {
	eachInference(t, func(t *testing.T, c *cell, call deedOn) {
		isConfirmation := func(op faultdb.Op) bool {
			return op.Executes() && (op.Query == c.store.Dialect().Text("confirm") || op.Query == c.store.Dialect().Text("confirm-placement"))
		}
		inj := faultdb.OnFunc(isConfirmation, faultdb.Always(faultdb.LoseReply()))
		// A repeat of a move finds that the row names another epoch.
		if moves := c.deed == "depart" || c.deed == "return"; moves {
			made := func(op faultdb.Op) bool { return op.Executes() && op.Query == c.store.Dialect().Text(c.deed) }
			inj = faultdb.Any(inj, faultdb.OnFunc(made, faultdb.Nth(1, faultdb.LoseReply())))
		} else if told, err := call(t.Context(), c.clean); err != nil || !told {
			// That was an earlier try without an answer.
			t.Fatalf("told %t, %v", told, err)
		}
		c.log.Reset()
		c.faults.Set(inj)
		told, err := call(t.Context(), c.store)
		c.faults.Set(nil)
		if told || !errors.Is(err, lease.ErrUnknown) {
			t.Errorf("told %t, %v, and nothing was acknowledged", told, err)
		}
		if c.log.Count(isConfirmation) == 0 {
			t.Errorf("nothing was confirmed: %q", c.log.Queries())
		}
		if c.deed == "depart" || c.deed == "return" {
			return
		}

		c.log.Reset()
		if told, err = call(t.Context(), c.store); err != nil || !told {
			t.Fatalf("the same call again: told %t, %v", told, err)
		}
		if n := c.log.Count(isConfirmation); n != 1 {
			t.Errorf("%d confirmations: %q", n, c.log.Queries())
		}
	})
}

// The confirmation is for what was read alone: a call that was not in doubt costs what it did.
func TestAnAnswerOfTheStatementItselfIsNotConfirmed(t *testing.T) {
	eachInference(t, func(t *testing.T, c *cell, call deedOn) {
		c.log.Reset()
		if told, err := call(t.Context(), c.store); err != nil || !told {
			t.Fatalf("told %t, %v", told, err)
		}
		for _, q := range c.log.Queries() {
			if q == c.store.Dialect().Text("confirm") || q == c.store.Dialect().Text("confirm-placement") {
				t.Errorf("sent %q", q)
			}
		}
	})
}

func eachInference(t *testing.T, f func(t *testing.T, c *cell, call deedOn)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			r := newRig(t, e, strategy, 1)
			for _, in := range inferences {
				if in.name == "acquire all" && !able(t, r.clean) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", strategy, in.name), func(t *testing.T) {
					defer r.faults.Set(nil)
					c := &cell{TB: t, rig: r, deed: in.name, key: fmt.Sprintf("%s/%s", in.name, lease.NewOwner())}
					f(t, c, in.begin(c))
				})
			}
		}
	})
}

// A claim may find what was passed to it a while ago, and its caller counts from when the claim was
// sent. What a renewal has made longer stays so.
func TestAConfirmedLeaseIsExtendedAndNeverShortened(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		l := hold(t, r.clean, "key")
		again := func(least time.Duration) {
			t.Helper()
			a, err := ask(t.Context(), r.store, lease.AcquireRequest{Key: "key", Owner: l.Owner, TTL: ttl})
			if err != nil || !a.Granted || a.Token != l.Token {
				t.Fatalf("the same request again was answered %+v, %v", a, err)
			}
			if row := r.row(t, "key"); row.Remaining < least-time.Minute || row.Remaining > least+time.Second {
				t.Errorf("%s remain, want %s", row.Remaining, least)
			}
		}
		renew := func(d time.Duration) {
			t.Helper()
			if _, err := r.clean.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: d}}); err != nil {
				t.Fatal(err)
			}
		}
		renew(time.Minute)
		again(ttl)
		renew(3 * ttl)
		again(3 * ttl)
	})
}

// A lease that expires when it has been read and before it is confirmed has ended. The repeated
// request is then a grant of its own, or none.
func TestAnExpiredLeaseIsNotConfirmed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		l := hold(t, r.clean, "key")
		came := false
		r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
			if op.Executes() && strings.Contains(op.Query, "rowlock confirm") && !came {
				came = true
				_, err := r.DB.ExecContext(t.Context(), r.SQL(`UPDATE {rowlock} SET expires_at = {now} - {second}`))
				wantIs(t, err, nil)
			}
			return faultdb.None
		}))
		a, err := ask(t.Context(), r.store, lease.AcquireRequest{Key: "key", Owner: l.Owner, TTL: ttl})
		r.faults.Set(nil)
		if !came {
			t.Fatal("nothing was confirmed")
		}
		row := r.row(t, "key")
		if err == nil && a.Granted && a.Token == l.Token || row.Held && row.Token == l.Token {
			t.Errorf("a lease that had expired was confirmed: %+v, and the row is %+v", a, row)
		}
	})
}
