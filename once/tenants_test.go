package once_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
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
			{"once-take", []any{make([]byte, 32), sqlstore.Micros(time.Hour), []byte("a"), []byte("k")}},
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
