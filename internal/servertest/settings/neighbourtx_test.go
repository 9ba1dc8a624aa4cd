package settings_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/schema"
)

// Package once begins a transaction for the application's function. It is as the database's
// defaults have it, and as Config.TxOptions say, and not as another client has left the session.
func TestAFunctionOfOnceHasTheDefaultsOfTheDatabaseBehindAPooler(t *testing.T) {
	t.Parallel()
	direct, pooled := ownDatabase(t)
	direct.Exec(t, `ALTER DATABASE `+nameOf(t, direct)+` SET default_transaction_isolation = 'repeatable read'`)
	direct.Exec(t, `ALTER DATABASE `+nameOf(t, direct)+` SET statement_timeout = '70s'`)
	for name, sets := range neighbours {
		if strings.HasPrefix(name, "another ") {
			continue // whose rights a function has is seen at once
		}
		t.Run(name, func(t *testing.T) {
			var set map[int]bool
			for level, want := range map[sql.IsolationLevel]string{
				sql.LevelDefault:       "repeatable read, off, on, 0, 70s",
				sql.LevelReadCommitted: "read committed, off, on, 0, 70s",
			} {
				set = inEverySession(t, pooled.Pool(t), sets)
				if got := insideOnce(t, pooled, level); got != want {
					t.Errorf("%s: the function ran in %s, want %s", level, got, want)
				}
			}
			if left := leftBehind(t, pooled.Pool(t), set, sets); left != "" {
				t.Errorf("the neighbour has lost what it has set: %s", left)
			}
		})
	}
}

// insideOnce is what a function of package once finds set.
func insideOnce(t *testing.T, e *testdb.Env, level sql.IsolationLevel) (found string) {
	t.Helper()
	o, err := once.New(e.Pool(t), e.Dialect, &once.Config{
		Reap: -1, TxOptions: &sql.TxOptions{Isolation: level},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	key := fmt.Sprintf("once %d", serial.Add(1))
	_, err = o.Do(t.Context(), once.Request{Key: key}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		return nil, tx.QueryRowContext(ctx, `SELECT concat_ws(', ', current_setting('transaction_isolation'),
			current_setting('transaction_read_only'), current_setting('synchronous_commit'),
			current_setting('lock_timeout'), current_setting('statement_timeout'))`).Scan(&found)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// optimistic writes several rows in a transaction of its own.
func TestATransactionOfOptimisticHasTheDefaultsOfTheDatabaseBehindAPooler(t *testing.T) {
	t.Parallel()
	direct, pooled := ownDatabase(t)
	direct.Exec(t, `CREATE SCHEMA app`)
	direct.Exec(t, `CREATE TABLE app.item (id int PRIMARY KEY, n int NOT NULL, version int NOT NULL, found text)`)
	direct.Exec(t, `INSERT INTO app.item VALUES (1, 0, 0), (2, 0, 0)`)
	direct.Exec(t, `CREATE FUNCTION app.find() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		NEW.found = concat_ws(', ', current_setting('transaction_isolation'),
			current_setting('synchronous_commit')); RETURN NEW; END $$`)
	direct.Exec(t, `CREATE TRIGGER find BEFORE UPDATE ON app.item FOR EACH ROW EXECUTE FUNCTION app.find()`)
	type item struct {
		ID      int `db:"id"`
		N       int `db:"n"`
		Version int `db:"version"`
	}
	for _, name := range []string{"serializable, and nothing may be written", "commits that wait for no disk"} {
		inEverySession(t, pooled.Pool(t), neighbours[name])
		table, err := optimistic.NewTable[item](pooled.Dialect, "app.item")
		if err != nil {
			t.Fatal(err)
		}
		err = table.Modify(t.Context(), pooled.Pool(t), []any{1, 2}, func(rows []*item) error {
			for _, r := range rows {
				r.N++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var found string
		err = direct.DB.QueryRowContext(t.Context(), `SELECT string_agg(DISTINCT found, '; ') FROM app.item`).Scan(&found)
		if err != nil || found != "read committed, on" {
			t.Errorf("beside %s the rows were written in %s, %v", name, found, err)
		}
	}
}

// A migration has no role, no limit and no READ ONLY of another client.
func TestAMigrationMindsNoNeighbourBehindAPooler(t *testing.T) {
	t.Parallel()
	direct, pooled := ownDatabase(t)
	for name, sets := range neighbours {
		t.Run(name, func(t *testing.T) {
			inEverySession(t, pooled.Pool(t), sets)
			prefix := dialect.Prefix(fmt.Sprintf("m%d_", serial.Add(1)))
			if err := schema.Migrate(t.Context(), pooled.Pool(t), pooled.New(prefix)); err != nil {
				t.Error(err)
			}
			if err := schema.Uninstall(t.Context(), pooled.Pool(t), pooled.New(prefix)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("read-only by default", func(t *testing.T) {
		direct.Exec(t, `ALTER DATABASE `+nameOf(t, direct)+` SET default_transaction_read_only = on`)
		// Whose default is on has sessions that have begun since.
		direct.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		migrate := func() error {
			return schema.Migrate(t.Context(), pooled.Pool(t), pooled.New(dialect.Prefix("ro_")))
		}
		err := migrate()
		// The pooler lends sessions that were ended until it has noticed each.
		for tries := 0; tries < 20 && err != nil && !errors.Is(err, lease.ErrReadOnly); tries++ {
			err = migrate()
		}
		if !errors.Is(err, lease.ErrReadOnly) {
			t.Errorf("it was told %v, want lease.ErrReadOnly", err)
		}
	})
}

// nameOf is the name of an Env's database.
func nameOf(t *testing.T, e *testdb.Env) (name string) {
	t.Helper()
	if err := e.DB.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
