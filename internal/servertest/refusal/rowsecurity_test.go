package refusal

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Hosters have people enable it on every table. What it hides looks missing, and the cure for that
// would let every token be granted again.
func TestRowLevelSecurityIsSaidFirst(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		for _, table := range []string{
			"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta",
		} {
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} ENABLE ROW LEVEL SECURITY`)
			refused(s, seen.Env.Pool(s), s.Env.Dialect, rowlock.ErrPrivilege, "row-level security is on for",
				s.Env.Table(table), "BYPASSRLS", "DISABLE ROW LEVEL SECURITY")
			_, err := rowlock.Open(seen.Env.Pool(s), s.Env.Dialect, servertest.Config())
			if text := strings.ToLower(err.Error()); strings.Contains(text, "drop") || strings.Contains(text, "migrate up") {
				s.Errorf("%s: %v", table, err)
			}
			r, err := doctor.Examine(s.Context(), seen.Env.Pool(s), s.Env.Dialect, &doctor.Options{Only: []string{"open"}})
			s.OK(err)
			if f := r.Findings[0]; f.Severity != doctor.Critical || !strings.Contains(f.Summary, "row-level security") {
				s.Errorf("the doctor: %+v", f)
			}
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} DISABLE ROW LEVEL SECURITY`)
		}
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} ENABLE ROW LEVEL SECURITY`)
		s.Exec(s.Env.DB, `CREATE POLICY everything ON {rowlock} FOR ALL USING (true)`)
		seen.T = s.T
		seen.Take(seen.Client(), "k")
	})
}
