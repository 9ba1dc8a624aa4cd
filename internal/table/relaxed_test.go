package table_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
)

// levels has the server note, at each commit that has changed a row, whether it waits for the disk.
// What it returns lists that, and forgets it.
func levels(t *testing.T, e *testdb.Env) func() string {
	t.Helper()
	name := e.Dialect.Names().Prefix + "levels"
	e.Exec(t, `CREATE TABLE `+name+` (level text)`)
	e.Exec(t, fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO %[1]s VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`, name))
	e.Exec(t, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER levels AFTER INSERT OR UPDATE ON %s
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %s()`, e.Table("rowlock"), name))
	t.Cleanup(func() {
		e.Exec(t, `DROP FUNCTION `+name+` CASCADE`)
		e.Exec(t, `DROP TABLE `+name)
	})
	return func() (all string) {
		t.Helper()
		err := e.DB.QueryRowContext(t.Context(), `WITH gone AS (DELETE FROM `+name+` RETURNING level)
			SELECT coalesce(string_agg(level, ' '), '') FROM gone`).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// On PostgreSQL only a transaction that does nothing but release is committed without waiting, and
// not the next one of the session.
func TestOnlyReleasesCommitWithoutWaiting(t *testing.T) {
	for _, name := range []string{"postgres", "pgbouncer"} {
		for _, relaxed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, relaxed: %t", name, relaxed), func(t *testing.T) {
				direct, e := on(t, "postgres"), (*testdb.Env)(nil)
				if e = direct; name == "pgbouncer" {
					direct, e = behind(t)
				}
				r := &relaxing{T: t, e: e, s: sessionOf(t, e), levels: levels(t, direct)}
				r.s.EraAt(0)
				r.s.Relaxed = relaxed
				if err := e.Dialect.Setup(t.Context(), r.s); err != nil {
					t.Fatal(err)
				}
				r.wants(map[bool]string{true: "off", false: "on"}[relaxed])
			})
		}
	}
}

// relaxing is a session, and what the server says of its commits.
type relaxing struct {
	*testing.T
	e      *testdb.Env
	s      *conn.Session
	levels func() string
}

func (r *relaxing) wants(released string) {
	a, b, c, d := r.hold("a"), r.hold("b"), r.hold("c"), r.hold("d")
	for _, step := range []struct {
		what, want string
		do         func() error
	}{
		{"grants", "on on on on", func() error { return nil }},
		{"a release", released, func() error { _, err := r.e.Dialect.Release(r.Context(), r.s, a); return err }},
		{"a batch of releases", released + " " + released, func() error {
			return r.apply(sqlstore.Change{From: b}, sqlstore.Change{From: c})
		}},
		{"a batch of both", "on on", func() error { return r.apply(toNext("a"), sqlstore.Change{From: d}) }},
		{"a grant", "on", func() error { r.hold("b"); return nil }},
		{"a release in the caller's transaction", "on", r.releaseTx},
	} {
		if err := step.do(); err != nil {
			r.Fatalf("%s: %v", step.what, err)
		}
		if got := r.levels(); got != step.want {
			r.Errorf("%s: synchronous_commit was %q, want %q", step.what, got, step.want)
		}
	}
}

func (r *relaxing) hold(key string) lease.Lease {
	r.Helper()
	l := lease.Lease{Key: key, Owner: lease.NewOwner()}
	a, err := r.e.Dialect.Acquire(r.Context(), r.s, adapter.Insert,
		lease.AcquireRequest{Key: key, Owner: l.Owner, TTL: time.Hour})
	if err != nil || !a.Granted {
		r.Fatalf("%q: %+v, %v", key, a, err)
	}
	l.Token = a.Token
	return l
}

func (r *relaxing) apply(changes ...sqlstore.Change) error {
	applied, err := r.e.Dialect.Apply(r.Context(), r.s, changes, false)
	for i := range applied {
		if applied[i].Outcome != sqlstore.Done {
			r.Errorf("change %d: %+v", i, applied[i])
		}
	}
	return err
}

// releaseTx releases in a transaction that is the caller's, and so is its commit.
func (r *relaxing) releaseTx() error {
	store, _, err := table.Open(r.Context(), r.e.Pool(r), r.e.Dialect, table.Options{
		Connections: 2, Relax: true, Timeout: patience,
	})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	l := r.hold("tx")
	r.levels()
	tx, err := r.e.DB.BeginTx(r.Context(), nil)
	if err != nil {
		return err
	}
	if err := store.ReleaseTx(r.Context(), locktest.SQL(tx), l); err != nil {
		return err
	}
	return tx.Commit()
}
