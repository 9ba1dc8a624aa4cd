package once_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// row makes a row of key k.
func (r *rig) row(t *testing.T, tenant, until string) {
	t.Helper()
	r.Exec(t, `INSERT INTO {rowlock_once} (tenant, {key}, fingerprint, made_at, expires_at)
		VALUES (?, ?, ?, {now}, `+until+`)`, []byte(tenant), []byte("k"), []byte(ofTenant(tenant)))
}

// ofTenant is the fingerprint of a tenant's row.
func ofTenant(name string) string { return strings.Repeat(name, 32) }

// found returns the fingerprints that a section reads, or the only column. It must not wait.
func found(t *testing.T, on connection, query string, args ...any) (out []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, dest := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(values[min(1, len(values)-1)]))
	}
	return out, rows.Err()
}

// connection is a pool or a transaction.
type connection interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// What is read for one tenant is the row of its own, whether or not there is one.
func TestNoReadFindsTheSameKeyOfAnotherTenant(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		id := []any{[]byte("a"), []byte("k")}
		own := map[string][]string{"once-look": {ofTenant("a")}}
		if r.Driver == "mysql" {
			own["once-peek"] = []string{"1"}
		}
		if r.Driver == "pgx" {
			own["once-claim"] = []string{ofTenant("a")}
		}
		r.row(t, "b", testdb.Later)
		r.row(t, "c", testdb.Later)
		for _, there := range []bool{false, true} {
			if there {
				r.row(t, "a", testdb.Later)
			}
			for section, want := range own {
				args := id
				if section == "once-claim" {
					if !there {
						continue
					}
					args = append(args[:2:2], []byte(ofTenant("n")), conn.Micros(time.Hour), "1000")
				}
				if !there {
					want = nil
				}
				got, err := found(t, r.DB, r.Dialect.Text(section), args...)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s reads %q, want %q; %v", section, got, want, err)
				}
			}
		}
	})
}

// locked has another transaction lock the row of a tenant.
func (r *rig) locked(t *testing.T, tenant string) *sql.Tx {
	t.Helper()
	tx, err := r.DB.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), r.SQL(`SELECT 1 FROM {rowlock_once} WHERE tenant = ? FOR UPDATE`), []byte(tenant))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// The oldest keys are swept first, and one that a transaction has is left to it.
func TestASweepTakesTheOldestThatNobodyHas(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.row(t, "a", "{now} - {second}")
		r.row(t, "b", "{now} - {second} - {second} - {second}")
		r.row(t, "c", "{now} - {second} - {second}")
		r.row(t, "d", testdb.Later)
		sweep := func(limit int, want ...string) {
			t.Helper()
			if _, err := found(t, r.DB, r.Dialect.Text("once-sweep"), limit); err != nil {
				t.Error(err)
			}
			left, err := found(t, r.DB, r.SQL(`SELECT tenant FROM {rowlock_once} ORDER BY tenant`))
			if err != nil || !slices.Equal(left, want) {
				t.Errorf("there are %q, want %q; %v", left, want, err)
			}
		}
		sweep(1, "a", "c", "d")
		if r.Name != "sqlite" {
			tx := r.locked(t, "c")
			sweep(10, "c", "d")
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		sweep(10, "d")
	})
}

// On MySQL a caller that does not wait is told of a transaction that has the key.
func TestALookAheadDoesNotWaitForWhoHasTheKey(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name != "mysql" {
			t.Skip("the claim itself does not wait")
		}
		r.row(t, "a", testdb.Later)
		for _, has := range []bool{false, true} {
			if has {
				r.locked(t, "a")
			}
			if got, err := found(t, r.DB, r.Dialect.Text("once-peek"), []byte("a"), []byte("k")); err != nil != has {
				t.Errorf("%q, %v; a transaction has the key: %t", got, err, has)
			}
		}
	})
}

// On MariaDB and MySQL a transaction may read as of its beginning. A key is looked at as of now, or
// the look is refused.
func TestALookSeesAKeyThatWasDoneMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Driver != "mysql" {
			t.Skip("there is no such read")
		}
		tx, err := r.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if got, err := found(t, tx, r.SQL(`SELECT tenant FROM {rowlock_once}`)); err != nil || len(got) != 0 {
			t.Fatalf("%q, %v", got, err)
		}
		r.row(t, "a", testdb.Later)
		got, err := found(t, tx, r.Dialect.Text("once-look"), []byte("a"), []byte("k"))
		if err == nil && len(got) != 1 {
			t.Error("the key that another transaction has done is absent")
		}
	})
}
