package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/keytext"
)

const (
	aroundPooler = "give the client a pool that goes to the server directly, or through the pooler in " +
		"session mode; or use postgres.New(postgres.Pooled()) with default_query_exec_mode=exec in the DSN"
	works = "locks, fences, shared locks, semaphores, latches, once and elections work through it; " +
		"notifications do not without postgres.Listen, nor do forupdate, session settings and prepared " +
		"statements"
)

// pooler finds out whether sessions of the server are shared with other clients: two connections
// that send in turn meet in one session then, or change it.
func pooler(ctx context.Context, x *examiner) (f Finding, err error) {
	conn, err := x.session(ctx)
	if err != nil {
		return f, err
	}
	if _, err := texts(ctx, conn, `BEGIN READ ONLY`); err != nil {
		return x.statementMode(f, err)
	}
	if _, err := texts(ctx, conn, `ROLLBACK`); err != nil {
		return f, err
	}
	meets, err := x.meets(ctx, conn, &f)
	if err != nil {
		return f, err
	}
	pooled := x.d.Pooled()
	f.saw("postgres.Pooled", pooled, "the dialect")
	switch {
	case meets && !pooled:
		f.raise(Critical, "the pool leads through a pooler in transaction mode, where the settings and "+
			"prepared statements of pinned connections would get into the sessions of other clients: Open refuses it",
			aroundPooler)
	case meets:
		f.raise(Info, "the pool leads through a pooler in transaction mode: "+works)
	case pooled:
		f.raise(Info, "postgres.Pooled is set, and no pooler in transaction mode was seen: without the "+
			"option calls take less time", "leave postgres.Pooled out, if there is no pooler")
	}
	if meets {
		err = x.leftBehind(ctx, &f)
	}
	f.fine("each connection has a session of its own")
	return f, err
}

func (x *examiner) statementMode(f Finding, err error) (Finding, error) {
	if !strings.Contains(err.Error(), "statement pooling") {
		return f, err
	}
	f.saw("BEGIN", keytext.Error(err), "the pooler")
	f.raise(Critical, "the pool leads through a pooler in statement mode, which refuses transactions: "+
		"there is no fence, and no lock that needs more than a statement",
		"set pool_mode = transaction for this database in pgbouncer.ini, and use postgres.Pooled; or "+
			aroundPooler)
	return f, nil
}

// meets reports whether conn and a second connection were in one session, or conn in two. A pool
// without a second connection shows nothing.
func (x *examiner) meets(ctx context.Context, conn *sql.Conn, f *Finding) (bool, error) {
	if s := x.pool.Stats(); s.MaxOpenConnections == 1 {
		return false, nil
	}
	other, err := x.pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer other.Close()
	query := x.text["session"]
	seen := make(map[string]bool)
	ours, rounds := "", 0
	for rounds < 5 {
		rounds++
		a, err := texts(ctx, conn, query)
		if err != nil {
			return false, err
		}
		b, err := texts(ctx, other, query)
		if err != nil {
			return false, err
		}
		seen[a[0][0]], seen["other "+b[0][0]] = true, true
		if a[0][0] == b[0][0] || ours != "" && ours != a[0][0] {
			f.saw("pg_backend_pid() of two connections", a[0][0]+" and "+b[0][0], "the server")
			return true, nil
		}
		ours = a[0][0]
	}
	f.saw("sessions of two connections", fmt.Sprintf("%d in %d rounds", len(seen), rounds), "the server")
	return false, nil
}

func (x *examiner) leftBehind(ctx context.Context, f *Finding) error {
	rows, err := x.rows(ctx, "left-behind")
	for _, r := range rows {
		f.saw(r[0], r[1], "pg_settings, source session")
		f.raise(Warning, "another client has left "+r[0]+" = "+r[1]+" in a shared session, and transactions "+
			"of the application run with it; those of rowlock make their own settings", "server_reset_query_always = 1 in pgbouncer.ini; and let clients use "+
			"SET LOCAL in transactions")
	}
	return err
}
