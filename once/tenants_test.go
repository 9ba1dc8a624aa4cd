package once_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// Two tenants may use the same key, and no write for one touches the row of the other.
func TestNoWriteTouchesTheSameKeyOfAnotherTenant(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for _, w := range []struct {
			section string
			args    []any
		}{
			{"once-confirm", []any{[]byte("a"), []byte("k")}},
			{"once-store", []any{[]byte("result"), []byte("a"), []byte("k")}},
			{"once-take", []any{make([]byte, 32), conn.Micros(time.Hour), []byte("a"), []byte("k")}},
		} {
			r.Exec(t, `DELETE FROM {rowlock_once}`)
			for _, tenant := range []string{"a", "b"} {
				r.Exec(t, `INSERT INTO {rowlock_once} (tenant, {key}, fingerprint, made_at, expires_at)
					VALUES (?, ?, ?, {now} - {second}, {now} - {second})`, []byte(tenant), []byte("k"), []byte{})
			}
			r.Exec(t, `UPDATE {rowlock_once} SET made_at = expires_at`)
			r.Exec(t, r.Dialect.Text(w.section), w.args...)
			var changed int
			query := r.SQL(`SELECT COUNT(*) FROM {rowlock_once} WHERE tenant = ? AND made_at = expires_at AND result IS NULL`)
			if err := r.DB.QueryRowContext(t.Context(), query, []byte("b")).Scan(&changed); err != nil || changed != 1 {
				t.Errorf("%s of tenant a has changed the row of b: %v", w.section, err)
			}
		}
	})
}

// A sweep removes the key that has expired, and not that of another tenant.
func TestASweepLeavesTheSameKeyOfAnotherTenant(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for tenant, until := range map[string]string{
			"a": "{now} - {second}", "b": testdb.Later,
		} {
			r.Exec(t, `INSERT INTO {rowlock_once} (tenant, {key}, fingerprint, made_at, expires_at)
				VALUES (?, ?, ?, {now}, `+until+`)`, []byte(tenant), []byte("k"), []byte{})
		}
		if n, err := r.once(t).Sweep(t.Context(), 10); n != 1 || err != nil {
			t.Errorf("%d rows are removed, want that of a: %v", n, err)
		}
		r.wantRows(t, 1)
	})
}

// A tenant's new keys are refused, its repeats are answered, and no other tenant hears of it.
func TestATenantStoresNoMoreKeysThanItMay(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{Reap: -1, MostPerTenant: 2})
		do := func(tenant, key string) error {
			_, err := o.Do(t.Context(), once.Request{Tenant: tenant, Key: key}, r.effect(key, "value"))
			return err
		}
		for _, c := range []struct {
			tenant, key string
			want        error
		}{
			{"a", "1", nil},
			{"a", "2", nil},
			{"a", "3", once.ErrTenantFull},
			{"a", "1", nil},
			{"b", "1", nil},
			{"a", "3", once.ErrTenantFull},
		} {
			if err := do(c.tenant, c.key); !errors.Is(err, c.want) {
				t.Errorf("key %s of %s: %v, want %v", c.key, c.tenant, err, c.want)
			}
		}
		r.wantRows(t, 3)
		r.Exec(t, `UPDATE {rowlock_once} SET made_at = {now} - {second}, expires_at = {now} - {second} WHERE tenant = ?`, []byte("a"))
		if n, err := o.Sweep(t.Context(), 10); n != 2 || err != nil {
			t.Errorf("%d rows are removed: %v", n, err)
		}
		if err := do("a", "3"); err != nil {
			t.Errorf("after the others have expired: %v", err)
		}
	})
}
