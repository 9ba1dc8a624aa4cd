package doctor_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/schema"
)

func TestSemiSynchronousReplicationThatFallsBackIsFound(t *testing.T) {
	t.Parallel()
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		semiSyncFallsBack(t, "mysql", "rpl_semi_sync_source_", "replica")
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		semiSyncFallsBack(t, "mariadb", "rpl_semi_sync_master_", "slave")
	})
}

// semiSyncFallsBack changes one thing at a time on a primary and a replica of the test's own.
func semiSyncFallsBack(t *testing.T, name, variable, replica string) {
	r, d := standby.StartReplicated(t, name), mysql.New()
	s := scene{&servertest.Scene{T: t}}
	s.OK(schema.Migrate(t.Context(), r.DB, d))
	becomes := func(severity doctor.Severity, says, set string) {
		t.Helper()
		if set != "" {
			_, err := r.DB.ExecContext(t.Context(), `SET GLOBAL `+variable+set)
			s.OK(err)
		}
		var f doctor.Finding
		s.Eventually(says, func() bool {
			f = s.examineOn(r.DB, d, quick("semi-sync")).Findings[0]
			return f.Severity == severity
		})
		judge(t, f, severity, says)
	}
	becomes(doctor.OK, "commits wait for a replica", "")
	becomes(doctor.Warning, "acknowledged alone", "timeout = 10000")
	becomes(doctor.OK, "", "timeout = 86400000")
	becomes(doctor.Warning, "wait_no_"+replica+" is OFF", "wait_no_"+replica+" = OFF")
	becomes(doctor.OK, "", "wait_no_"+replica+" = ON")
	r.Pause(t)
	becomes(doctor.Warning, "0 of 1 required", "")
	becomes(doctor.Warning, "1 ms", "timeout = 1")
	_, err := r.DB.ExecContext(t.Context(), `CREATE TABLE nothing (n INT)`) // no replica has it
	s.OK(err)
	becomes(doctor.Warning, "has stopped waiting", "timeout = 86400000")
	r.Resume(t)
	becomes(doctor.Info, "acknowledged alone", "")
	becomes(doctor.OK, "replication is off", "enabled = OFF")
}
