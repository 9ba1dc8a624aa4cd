package election_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

// Each refusal names the value and the cure, and nothing was sent before.
func TestBadInputIsRefused(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		lead := func(context.Context, *rowlock.Lock) error {
			t.Error("lead was called")
			return nil
		}
		ctx, long := t.Context(), strings.Repeat("n", election.MaxName+1)
		opt := func(o ...election.Option) error { return election.Run(ctx, c, "boss", lead, o...) }
		of := func(_ election.Term, err error) error { return err }
		observe := func(ctx context.Context, c *rowlock.Client, name string) (last error) {
			for _, last = range election.Observe(ctx, c, name) { //nolint:revive // the last one is wanted
			}
			return last
		}
		var none context.Context
		for want, err := range map[string]error{
			"ctx is nil; pass context.Background()":    election.Run(none, c, "boss", lead),
			"locks is nil; open a client":              election.Run(ctx, nil, "boss", lead),
			`election "boss": lead is nil; give it`:    election.Run(ctx, c, "boss", nil),
			"is empty; it has 1 to 200 bytes":          election.Run(ctx, c, "", lead),
			"has 201 bytes; at most 200 are allowed":   election.Run(ctx, c, long, lead),
			"option 2 is nil; leave it out":            opt(election.With(), nil),
			"option 1 is nil; leave it out":            opt(election.With(nil)),
			"Drain (-1s) is negative; use 0":           opt(election.Drain(-time.Second)),
			"Rest (-1s) must be more than 0; leave":    opt(election.Rest(-time.Second)),
			"Rest (0s) must be more than 0; leave":     opt(election.Rest(0)),
			"OnError's function is nil; leave the":     opt(election.OnError(nil)),
			"TTL (1ms) must be at least 100ms":         opt(election.With(rowlock.TTL(time.Millisecond))),
			"Priority (11) must be 1 to 10":            opt(election.Prefer(true), election.With(rowlock.Priority(11))),
			"election.Leader: ctx is nil":              of(election.Leader(none, c, "boss")),
			`election "boss": locks is nil`:            of(election.Leader(ctx, nil, "boss")),
			"the name of an election is empty":         of(election.Leader(ctx, c, "")),
			"election.Observe: ctx is nil":             observe(none, c, "boss"),
			`election "boss": locks is nil; open`:      observe(ctx, nil, "boss"),
			"the name of an election is empty; it has": observe(ctx, c, ""),
			`its name has 201 bytes; at most 200 are `: observe(ctx, c, long),
		} {
			clienttest.WantIs(t, want, err, lease.ErrConfig)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
				!strings.HasPrefix(err.Error(), "rowlock: ") {
				t.Errorf("%v, want %q in one line", err, want)
			}
		}
		if acquires, _, _ := s.Calls(); acquires > 0 || s.Polled() > 0 {
			t.Errorf("%d acquires and %d polls", acquires, s.Polled())
		}
	})
}

// Names are what they are, up to the longest; keys of rowlock's own cannot be met.
func TestEveryNameWithinTheLimitWorks(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		for _, name := range []string{
			"a", "A", " ", "ä/b\x00", lease.Reserved + "reaper", strings.Repeat("n", election.MaxName),
		} {
			ctx, cancel := context.WithCancel(t.Context())
			led := ""
			err := election.Run(ctx, c, name, func(_ context.Context, l *rowlock.Lock) error {
				led = l.Key()
				cancel()
				return nil
			}, election.Prefer(true))
			if err != nil || led != election.Key(name) {
				t.Errorf("%q: %v, key %q", name, err, led)
			}
			if err := lease.CheckKey(election.PreferredKey(name)); err != nil {
				t.Error(err)
			}
		}
	})
}
