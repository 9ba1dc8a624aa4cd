package table_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A request is repeated while its first copy has changed the row and not committed yet. The
// repetition is not granted, and does not say that none will be: the copy's commit grants the key.
func TestARepetitionBesideItsFirstCopyIsUnsure(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			r := newRig(t, e, strategy, 2)
			for name, ask := range map[string]func(lease.AcquireRequest) (lease.Acquired, error){
				"acquire": func(q lease.AcquireRequest) (lease.Acquired, error) {
					return one(r.store.Acquire(t.Context(), []lease.AcquireRequest{q}))
				},
				"batch": func(q lease.AcquireRequest) (lease.Acquired, error) {
					other := q
					other.Key += "/other"
					return one(r.store.Acquire(t.Context(), []lease.AcquireRequest{q, other}))
				},
				"claim": func(q lease.AcquireRequest) (lease.Acquired, error) {
					return one(r.store.Claim(t.Context(), []lease.AcquireRequest{q}))
				},
				"all": func(q lease.AcquireRequest) (lease.Acquired, error) {
					return one(r.store.AcquireAll(t.Context(), []lease.AcquireRequest{q}))
				},
			} {
				t.Run(strategy.String()+"/"+name, func(t *testing.T) { r.besideItsCopy(t, t.Name(), ask) })
			}
		}
	})
}

func one(answers []lease.Acquired, err error) (lease.Acquired, error) {
	if len(answers) == 0 {
		return lease.Acquired{}, err
	}
	return answers[0], errors.Join(err, answers[0].Err)
}

func (r *rig) besideItsCopy(t *testing.T, key string, ask func(lease.AcquireRequest) (lease.Acquired, error)) {
	old := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl}
	if a, err := one(r.clean.Acquire(t.Context(), []lease.AcquireRequest{old})); err != nil || !a.Granted {
		t.Fatalf("%+v, %v", a, err)
	}
	r.Expire(t, key)
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl}
	tx, err := r.DB.BeginTx(t.Context(), nil) // the first copy, at work
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is over by then
	if _, err := tx.ExecContext(t.Context(), r.SQL(`UPDATE {rowlock} SET owner = ?, token = token + 1 WHERE {key} = ?`),
		conn.Bytes(q.Owner), []byte(key)); err != nil {
		t.Fatal(err)
	}
	a, err := ask(q)
	if err == nil && (a.Granted || !a.Locked && !a.Unknown) {
		t.Errorf("beside its first copy a request was answered %+v", a)
	}
	if err != nil && !errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("beside its first copy a request failed: %v", err)
	}
}
