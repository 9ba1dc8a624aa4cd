package doctor_test

import (
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// What no other check knows is found because the check does what Open does.
func TestWhateverMakesOpenFailIsCritical(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		s.wants(doctor.OK, "open", "every kind of statement")
		for _, c := range []struct{ what, breaks, mends string }{
			{
				"a floor is gone", `DELETE FROM {rowlock_floor} WHERE bucket = 3`,
				`INSERT INTO {rowlock_floor} (bucket, floor) VALUES (3, 0)`,
			},
			{
				"the instance is gone", `UPDATE {rowlock_meta} SET name = 'other' WHERE name = 'instance'`,
				`UPDATE {rowlock_meta} SET name = 'instance' WHERE name = 'other'`,
			},
			{
				"a column is gone", `ALTER TABLE {rowlock_wait} RENAME COLUMN awaits TO other`,
				`ALTER TABLE {rowlock_wait} RENAME COLUMN other TO awaits`,
			},
			{
				"the version is no number", `UPDATE {rowlock_meta} SET value = 'x' WHERE name = 'schema_version'`,
				`UPDATE {rowlock_meta} SET value = '3' WHERE name = 'schema_version'`,
			},
		} {
			s.Exec(s.Env.DB, c.breaks)
			if client, err := rowlock.Open(s.Env.Pool(s), s.Env.Dialect, servertest.Config()); err == nil {
				s.Errorf("%s: Open does not refuse it", c.what)
				s.OK(client.Close())
			}
			s.wants(doctor.Critical, "open", "rowlock.Open refuses")
			s.Exec(s.Env.DB, c.mends)
		}
		s.wants(doctor.OK, "open")
	})
}
