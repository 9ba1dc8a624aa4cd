package standby

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/rowlockdb/rowlock/internal/ports"
)

// Lone is a PostgreSQL without a standby, for tests of what a crash forgets.
type Lone struct {
	DB     *sql.DB // for the test's own questions
	Source string  // its DSN

	server   *server
	settings []string
}

// StartLone starts it with settings, and stops it with the test. It skips as Start does.
func StartLone(tb testing.TB, settings ...string) *Lone {
	tb.Helper()
	programs := find(tb)
	addresses, err := ports.Free(1)
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{programs: programs, data: filepath.Join(scratch(tb), "lone"), address: addresses[0]}
	s.run(tb, "initdb", "--pgdata="+s.data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
	s.start(tb, settings...)
	return &Lone{DB: s.open(tb), Source: s.dsn(), server: s, settings: settings}
}

// Crash kills all of its processes at once and starts it again, with what it had written.
func (l *Lone) Crash(tb testing.TB) {
	tb.Helper()
	l.server.kill(tb)
	l.server.again(tb, l.settings...)
}

// Restart kills it and starts it again, with other settings.
func (l *Lone) Restart(tb testing.TB, settings ...string) {
	tb.Helper()
	l.settings = settings
	l.Crash(tb)
}
