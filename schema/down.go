package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// kept are the tables in which Down keeps which tokens were granted. The version of tables that
// Migrate refuses is among them.
var kept = []string{"rowlock_floor", "rowlock_meta"}

// ours are all tables that rowlock has made, those of [kept] first, and of each a column that it
// has had in every version. Commits before the first release made rowlock_era.
const ours = "rowlock_floor.bucket rowlock_meta.value rowlock.acquired_at rowlock_queue.waiter " +
	"rowlock_wait.awaits rowlock_forced.raised rowlock_member.joined_at rowlock_limit.peak " +
	"rowlock_once.fingerprint rowlock_latch.generation rowlock_party.counted_at rowlock_hold.made_at " +
	"rowlock_trace.event rowlock_era.history"

// guards are tables whose rows guard something, the section that counts them, and what they are.
// Waiters guard nothing, and are told besides.
var guards = []struct{ table, section, what string }{
	{"rowlock", "guard-leases", "keys are locked"},
	{"rowlock", "guard-keys", "keys are in a cluster, or have no tokens left"},
	{"rowlock_member", "guard-members", "readers hold keys"},
	{"rowlock_once", "guard-once", "results of once have not expired"},
	{"rowlock_latch", "guard-latches", "latches or barriers have not expired"},
	{"rowlock_queue", "waiters", "wait for keys"},
}

// Down removes the tables, except rowlock_floor and rowlock_meta. In these it keeps which tokens
// were granted, so that tokens go on above them after another Migrate. [Uninstall] removes them
// too. Missing tables are no error, but for one of the two that have the tokens.
//
// It refuses with lease.ErrHeld, and changes nothing, while the tables guard something: locks, and
// with them the slots of limits, keys in a cluster, results of once, latches and barriers that have
// not expired. The error says how many waiters and sessions there are besides. If Down succeeds
// while other sessions are connected to the database, it tells so to slog.Default, at level Info.
//
// Tables of a newer rowlock stay as they are, because there may be some that this version does not
// know. It waits for tables in use, and db and the errors are, as for Migrate. On MySQL and MariaDB
// the user needs the right LOCK TABLES, too.
func Down(ctx context.Context, db DB, d dialect.Dialect) error {
	return remove(ctx, "schema.Down", db, d, false)
}

// Uninstall removes all tables, with every lock, result and token floor in them. Stop the clients
// first, and afterwards fence nothing with a token from before, because new tables may grant it
// again. Otherwise it is as Down. Both refuse with lease.ErrHeld while a table is protected, and
// leave a table alone that has a name of rowlock's and not its columns.
func Uninstall(ctx context.Context, db DB, d dialect.Dialect) error {
	return remove(ctx, "schema.Uninstall", db, d, true)
}

func remove(ctx context.Context, caller string, db DB, d dialect.Dialect, all bool) error {
	s, err := newSession(ctx, caller, db, d)
	if err != nil {
		return err
	}
	err = s.run(ctx, db, "remove tables", func(ctx context.Context, conn *sql.Conn) error {
		return s.remove(ctx, conn, all)
	})
	switch n := s.sessions(ctx, db); {
	case n == 0, all && err == nil: // who cleans up has sessions of its own
	case err == nil:
		slog.Default().InfoContext(ctx, "rowlock: tables removed; other sessions are connected to the "+
			"database", "sessions", n)
	case errors.Is(err, lease.ErrHeld):
		err = fmt.Errorf("%w; %d other sessions are connected to the database", err, n)
	}
	return err
}

func (s *session) remove(ctx context.Context, conn *sql.Conn, all bool) error {
	has, err := s.read(ctx, conn)
	if err != nil {
		return err
	}
	for set, v := range has {
		if v.At > Version || !all && 0 < v.At && v.At < first {
			v.From = v.At // what another version has made, this one cannot know
			return sqlstore.CheckVersion(set, v)
		}
	}
	present, err := s.lockTables(ctx, conn)
	if err == nil {
		err = s.unprotected(ctx, conn)
	}
	if err == nil && !all {
		err = s.keepTokens(ctx, conn, present, has[Core].At > 0)
	}
	if err == nil && has[Core].At >= first {
		err = s.exec(ctx, conn, s.statements.Text("forget-version"))
	}
	for _, table := range slices.Backward(present) {
		if err == nil && (all || !slices.Contains(kept, table)) {
			err = s.exec(ctx, conn, "DROP TABLE "+s.dialect.Fill(table))
		}
	}
	return err
}

// lockTables returns the tables that are there. Nothing is granted in them from then on.
func (s *session) lockTables(ctx context.Context, conn *sql.Conn) (present []string, err error) {
	for column := range strings.FieldsSeq(ours) {
		there, err := s.exists(ctx, conn, column)
		if err != nil {
			return nil, err
		}
		if table, _, _ := strings.Cut(column, "."); there {
			present = append(present, table)
		}
	}
	lock, ok := s.statements["lock-tables"]
	if !ok || len(present) == 0 {
		return present, nil
	}
	lock, mode, _ := strings.Cut(lock, "@tables")
	return present, s.exec(ctx, conn, lock+s.dialect.Fill(strings.Join(present, mode+", "))+mode)
}

// keepTokens raises the floors to the largest token, unless the tables guard something. A table of
// locks that is gone while the tables have a version was lost: Down forgets the version first.
func (s *session) keepTokens(ctx context.Context, conn *sql.Conn, present []string, made bool) error {
	has := func(table string) bool { return slices.Contains(present, table) }
	var found []string
	guarded := false
	for _, g := range guards {
		if !has(g.table) {
			continue
		}
		var n int
		if err := conn.QueryRowContext(ctx, s.statements.Text(g.section)).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, g.what))
			guarded = guarded || g.section != "waiters"
		}
	}
	switch {
	case guarded:
		return fmt.Errorf("%w: the tables stay, because they guard something: %s; wait until that has "+
			"ended, or have schema.Uninstall remove it", lease.ErrHeld, strings.Join(found, ", "))
	case !has("rowlock") && !made:
		return nil
	case !has("rowlock") || !has("rowlock_floor"):
		return fmt.Errorf("%w: rowlock or rowlock_floor is lost, which have the tokens; restore it from a backup, "+
			"or have schema.Uninstall remove all, after which they begin again", lease.ErrNoSchema)
	}
	return s.exec(ctx, conn, s.statements.Text("keep-tokens"))
}

// sessions returns how many others are connected to the database, as far as it tells: clients,
// their pools, or other programs.
func (s *session) sessions(ctx context.Context, db DB) (n int) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0
	}
	defer conn.Close()
	_ = conn.QueryRowContext(ctx, s.statements["sessions"]).Scan(&n) // of SQLite there is none
	return n
}
