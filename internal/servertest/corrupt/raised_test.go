package corrupt

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// What a trigger raises has undone the statement: the caller gets its text at once, and no doubt.
func TestWhatATriggerRaisesIsARefusalWithItsText(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		ago := past[e.Driver]
		e.Exec(t, `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at, note, placement) VALUES (?, 7, `+ago+`, `+ago+`, 'stubborn', 0)`,
			[]byte("k"))
		(&beside{T: t, env: e}).refusing("stubborn")
		r := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		got, err := s.Acquire(t.Context(), []lease.AcquireRequest{r})
		if err == nil {
			err = got[0].Err
		}
		if err == nil || errors.Is(err, lease.ErrUnknown) || got != nil && got[0].Unknown {
			t.Fatalf("%+v, %v: want a refusal without a doubt", got, err)
		}
		for _, text := range []string{"stubborn", "drop the trigger"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not say %q", err, text)
			}
		}
	})
}
