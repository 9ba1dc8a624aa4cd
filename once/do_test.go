package once_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

func TestARepeatIsReplayedAndNotRun(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		req := once.Request{Tenant: "shop", Key: "key", Fingerprint: once.Fingerprint([]byte("body"))}
		want(t, do(t, o, req, r.effect("e", "value")), "value", false)
		want(t, do(t, o, req, never(t)), "value", true)
		want(t, do(t, r.open(t, r.Pool(t), once.Config{}), req, never(t)), "value", true)
		r.wantEffects(t, "e", 1)
		r.wantRows(t, 1)
	})
}

func TestAnEmptyResultIsReplayedAsNone(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		for _, replayed := range []bool{false, true} {
			if res := do(t, o, once.Request{Key: "key"}, r.effect("e", "")); res.Value != nil || res.Replayed != replayed {
				t.Errorf("got %+v", res)
			}
		}
		r.wantEffects(t, "e", 1)
	})
}

// All bytes come back, in a result as large as is allowed.
func TestAResultComesBackByteForByte(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{MaxResult: 8 << 20, Reap: -1})
		all := make([]byte, 8<<20)
		for i := range all {
			all[i] = byte(i + i>>8)
		}
		f := func(context.Context, *sql.Tx) ([]byte, error) { return all, nil }
		do(t, o, once.Request{Key: "key"}, f)
		if got := do(t, o, once.Request{Key: "key"}, never(t)); !bytes.Equal(got.Value, all) {
			t.Errorf("%d other bytes came back", len(got.Value))
		}
	})
}

func TestAnErrorOfTheFunctionStoresNothing(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		failed := errors.New("no")
		_, err := o.Do(t.Context(), once.Request{Key: "key"}, then(r.effect("e", "value"), func() error { return failed }))
		if err != failed {
			t.Errorf("got %v, want the function's own error", err)
		}
		r.wantEffects(t, "e", 0)
		r.wantRows(t, 0)
		want(t, do(t, o, once.Request{Key: "key"}, r.effect("e", "value")), "value", false)
	})
}

func TestAPanicStoresNothingAndLetsTheNextIn(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.DB.SetMaxOpenConns(1) // a call that kept the connection would exclude all others
		o := r.once(t)
		func() {
			defer func() {
				if p := recover(); p != "help" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = o.Do(t.Context(), once.Request{Key: "key"}, then(r.effect("e", "value"), func() error { panic("help") }))
		}()
		r.wantEffects(t, "e", 0)
		want(t, do(t, o, once.Request{Key: "key"}, r.effect("e", "value")), "value", false)
	})
}

// A caller that asks whether its own deadline has passed is not misled by a bound of Do's.
func TestAPoolWithoutAConnectionIsNoDeadlineOfTheCaller(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{Reap: -1, Wait: time.Millisecond})
		r.DB.SetMaxOpenConns(1)
		all, err := r.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		_, err = o.Do(context.Background(), once.Request{Key: "key"}, r.effect("e", ""))
		if wantIs(t, err, adapter.ErrLate); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a context's, though the caller has none that ends", err)
		}
	})
}

func TestAnotherRequestUnderTheKeyIsRefused(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		one, other := once.Fingerprint([]byte("a"), []byte("bc")), once.Fingerprint([]byte("ab"), []byte("c"))
		if bytes.Equal(one, other) {
			t.Error("parts run together")
		}
		prints := [][]byte{nil, one, other}
		for i, first := range prints {
			key := string(rune('a' + i))
			do(t, o, once.Request{Key: key, Fingerprint: first}, r.effect(key, ""))
			for _, second := range prints {
				if bytes.Equal(first, second) {
					continue
				}
				_, err := o.Do(t.Context(), once.Request{Key: key, Fingerprint: second}, never(t))
				wantIs(t, err, once.ErrMismatch)
			}
			r.wantEffects(t, key, 1)
		}
	})
}

func TestAnExpiredKeyIsDoneAgain(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		req := once.Request{Key: "key", Fingerprint: once.Fingerprint([]byte("a"))}
		do(t, o, req, r.effect("e", "first"))
		r.expire(t)
		req.Fingerprint = once.Fingerprint([]byte("b"))
		want(t, do(t, o, req, r.effect("e", "")), "", false)
		want(t, do(t, o, req, never(t)), "", true) // and not "first"
		r.wantEffects(t, "e", 2)
		r.wantRows(t, 1)
	})
}

// A row is kept for as long as was asked, counted from when it was made, or made again.
func TestAResultIsKeptForSoLong(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{Keep: 90 * time.Minute, Reap: -1})
		kept := map[string]string{
			"sqlite": `(expires_at - made_at) / 1000`, "postgres": `CAST(EXTRACT(epoch FROM expires_at - made_at) AS bigint)`,
			"mysql": `TIMESTAMPDIFF(SECOND, made_at, expires_at)`, "mariadb": `TIMESTAMPDIFF(SECOND, made_at, expires_at)`,
		}[r.Name]
		for _, what := range []string{"made", "taken over"} {
			do(t, o, once.Request{Key: "key"}, r.effect("e", ""))
			if n := r.count(t, `SELECT `+kept+` FROM {rowlock_once}`); n < 5399 || n > 5400 {
				t.Errorf("%s: kept for %d s, want 5400", what, n)
			}
			r.expire(t)
		}
		r.wantEffects(t, "e", 2)
	})
}

// A taker that is rolled back leaves the expired row to the next.
func TestAnExpiredKeyThatWasNotDoneAgainIsStillExpired(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		do(t, o, once.Request{Key: "key"}, r.effect("e", "first"))
		r.expire(t)
		_, err := o.Do(t.Context(), once.Request{Key: "key"}, then(r.effect("e", "x"), func() error { return errors.New("no") }))
		if err == nil {
			t.Fatal("no error")
		}
		want(t, do(t, o, once.Request{Key: "key"}, r.effect("e", "second")), "second", false)
		r.wantEffects(t, "e", 2)
	})
}

func TestTenantsDoNotMeet(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		for _, req := range []once.Request{{Key: "key"}, {Tenant: "a", Key: "key"}, {Tenant: "A", Key: "key"}, {Tenant: "a ", Key: "key"}, {Tenant: "ak", Key: "ey"}} {
			want(t, do(t, o, req, r.effect("e", req.Tenant)), req.Tenant, false)
		}
		r.wantEffects(t, "e", 5)
	})
}

func TestKeysAreComparedByteForByte(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		keys := []string{"A", "a", "a ", " a", "á", "a\x00", "\x00", "\xff\xfe", strings.Repeat("k", 255), strings.Repeat("k", 254)}
		for _, key := range keys {
			want(t, do(t, o, once.Request{Key: key}, r.effect("e", key)), key, false)
		}
		for _, key := range keys {
			want(t, do(t, o, once.Request{Key: key}, never(t)), key, true)
		}
	})
}

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		f, long := r.effect("e", ""), strings.Repeat("k", 256)
		for _, bad := range []struct {
			req once.Request
			f   once.Func
			is  error
		}{
			{once.Request{}, f, lease.ErrInvalidKey},
			{once.Request{Key: long}, f, lease.ErrInvalidKey},
			{once.Request{Key: lease.Reserved + "x"}, f, lease.ErrInvalidKey},
			{once.Request{Key: "k", Tenant: long}, f, lease.ErrInvalidKey},
			{once.Request{Key: "k", Fingerprint: []byte("body")}, f, lease.ErrConfig},
			{once.Request{Key: "k"}, nil, lease.ErrConfig},
		} {
			_, err := o.Do(t.Context(), bad.req, bad.f)
			wantIs(t, err, bad.is)
			_, err = o.In(t.Context(), nil, bad.req, bad.f)
			wantIs(t, err, bad.is)
		}
		_, err := o.In(t.Context(), nil, once.Request{Key: "k"}, f)
		wantIs(t, err, lease.ErrConfig)
		r.wantRows(t, 0)
		r.wantEffects(t, "e", 0)
	})
}

func TestAResultTooLargeIsRefusedAndNothingIsWritten(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{MaxResult: 10, Reap: -1})
		_, err := o.Do(t.Context(), once.Request{Key: "key"}, r.effect("e", "12345678901"))
		wantIs(t, err, once.ErrResultTooLarge)
		r.wantRows(t, 0)
		r.wantEffects(t, "e", 0)
		want(t, do(t, o, once.Request{Key: "key"}, r.effect("e", "1234567890")), "1234567890", false)
	})
}

func TestNothingIsDoneAfterClose(t *testing.T) {
	o := newRig(t, testdb.Kinds[0].Open(t)).once(t)
	_ = o.Close()
	_ = o.Close()
	_, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t))
	wantIs(t, err, lease.ErrClosed)
	_, err = o.Sweep(t.Context(), 0)
	wantIs(t, err, lease.ErrClosed)
}

// What a function ends itself is not committed a second time, and not taken for done.
func TestAFunctionThatEndsTheTransactionIsTold(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		for _, value := range []string{"", "value"} {
			rollBack := func(_ context.Context, tx *sql.Tx) ([]byte, error) { return []byte(value), tx.Rollback() }
			_, err := o.Do(t.Context(), once.Request{Key: "key"}, rollBack)
			wantIs(t, err, lease.ErrConfig, sql.ErrTxDone)
		}
		_, err := o.In(t.Context(), r.begin(t, nil), once.Request{Key: "key"}, func(_ context.Context, tx *sql.Tx) ([]byte, error) { return []byte("value"), tx.Rollback() })
		wantIs(t, err, lease.ErrConfig, sql.ErrTxDone)
		r.wantRows(t, 0)
	})
}

// Two tenants' keys of one name expire together. What one of them does again is nothing of the
// other's.
func TestATenantTakesOverItsOwnKeyAlone(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		for _, tenant := range []string{"a", "b"} {
			do(t, o, once.Request{Tenant: tenant, Key: "key"}, r.effect("e", tenant))
		}
		r.expire(t)
		want(t, do(t, o, once.Request{Tenant: "a", Key: "key"}, r.effect("e", "again")), "again", false)
		want(t, do(t, o, once.Request{Tenant: "b", Key: "key"}, r.effect("e", "b again")), "b again", false)
		r.wantEffects(t, "e", 4)
	})
}
