package once_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

// Each run would have its effects outside of the transaction again.
func TestAResultThatTheServerWillNotTakeIsAnErrorAfterOneRun(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{Reap: -1, MaxResult: 8 << 20})
		o.Limit(100_000)
		runs := 0
		f := func(context.Context, *sql.Tx) ([]byte, error) { runs++; return make([]byte, 100_000), nil }
		_, err := o.Do(t.Context(), once.Request{Key: "big"}, f)
		if !errors.Is(err, once.ErrResultTooLarge) || !strings.Contains(err.Error(), "max_allowed_packet") {
			t.Errorf("the error is %v", err)
		}
		tx, err := r.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.In(t.Context(), tx, once.Request{Key: "big in"}, f)
		if !errors.Is(err, once.ErrResultTooLarge) || runs != 2 {
			t.Errorf("%d runs, and the error is %v", runs, err)
		}
		if _, err := o.Do(t.Context(), once.Request{Key: "big"}, r.effect("e", "small")); err != nil {
			t.Error(err)
		}
	})
}

func TestTheServersOwnLimitIsTheOneOfItsSessions(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		n, err := r.once(t).Limited(t.Context(), lease.InTx(r.DB))
		if err != nil || n != 0 && n < 1<<20 || n == 0 && (r.Name == "mysql" || r.Name == "mariadb") {
			t.Errorf("%s: %d, %v", r.Name, n, err)
		}
	})
}

// interpolateParams writes a value into the statement, where each byte that is escaped takes two.
func TestAResultThatFitsIsKeptHoweverTheDriverWouldWriteIt(t *testing.T) {
	for _, k := range testdb.Servers[1:] {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			e.Source += "?interpolateParams=true"
			r := newRig(t, e)
			o := r.open(t, e.Pool(t), once.Config{Reap: -1, MaxResult: 8 << 20})
			most, err := o.Limited(t.Context(), lease.InTx(r.DB))
			if err != nil {
				t.Fatal(err)
			}
			value, runs := bytes.Repeat([]byte{'\''}, int(min(most*3/4, 8<<20))), 0
			res, err := o.Do(t.Context(), once.Request{Key: "quotes"}, func(context.Context, *sql.Tx) ([]byte, error) {
				runs++
				return value, nil
			})
			if err != nil || runs != 1 || !bytes.Equal(res.Value, value) {
				t.Errorf("%d runs: %v, and %d bytes of %d", runs, err, len(res.Value), len(value))
			}
		})
	}
}
