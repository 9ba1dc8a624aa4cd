package table_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// commits has every commit that changed a row of a lease wait while the test holds a lock: all of
// its statements have succeeded by then, and returned their rows.
type commits struct {
	*testdb.Env
	conn *sql.Conn
	lock string // its number, as SQL
	held bool
}

func holdCommits(t *testing.T, e *testdb.Env) *commits {
	t.Helper()
	name := strings.Trim(e.Table("rowlock"), `"`) + "_commit"
	c := &commits{Env: e, lock: `hashtext('` + name + `')`, held: true}
	e.Exec(t, `CREATE FUNCTION `+name+`() RETURNS trigger LANGUAGE plpgsql AS
		$f$ BEGIN PERFORM pg_advisory_xact_lock_shared(`+c.lock+`); RETURN NULL; END $f$`)
	t.Cleanup(func() { e.Exec(t, `DROP FUNCTION `+name+` CASCADE`) })
	e.Exec(t, `CREATE CONSTRAINT TRIGGER `+name+` AFTER INSERT OR UPDATE ON {rowlock}
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION `+name+`()`)
	var err error
	if c.conn, err = e.DB.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.letGo(t); _ = c.conn.Close() })
	if _, err := c.conn.ExecContext(t.Context(), `SELECT pg_advisory_lock(`+c.lock+`)`); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *commits) letGo(t *testing.T) {
	if c.held {
		c.held = false
		if _, err := c.conn.ExecContext(context.Background(), `SELECT pg_advisory_unlock(`+c.lock+`)`); err != nil {
			t.Error(err)
		}
	}
}

// waiting returns the session whose commit waits.
func (c *commits) waiting(t *testing.T) (session int64) {
	return sessionThatWaits(t, c.Env,
		`locktype = 'advisory' AND objid = ((`+c.lock+`)::bigint & 4294967295)::oid`)
}

// sessionThatWaits returns a session that waits for a lock of the kind, when there is one.
func sessionThatWaits(t *testing.T, e *testdb.Env, kind string) (session int64) {
	for end := time.Now().Add(patience); session == 0; time.Sleep(time.Millisecond) {
		err := e.DB.QueryRowContext(t.Context(),
			`SELECT COALESCE(max(pid), 0) FROM pg_locks WHERE NOT granted AND `+kind).Scan(&session)
		if err != nil || time.Now().After(end) {
			t.Error("no session waits", err)
			break
		}
	}
	return session
}

// The rows of a pipeline were returned, and all of its statements have succeeded: what is told
// waits for the commit, and is what the commit says.
func TestNoCallOfAPipelineIsAnsweredBeforeItsCommitIs(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *commits, session int64, alone <-chan struct{}){
		"acknowledged": func(*testing.T, *commits, int64, <-chan struct{}) {},
		"refused":      func(_ *testing.T, _ *commits, _ int64, alone <-chan struct{}) { <-alone },
		"broken off": func(t *testing.T, c *commits, session int64, _ <-chan struct{}) {
			c.Exec(t, `SELECT pg_terminate_backend(?)`, session)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, on(t, "postgres"), adapter.Update, 1)
			names := numbered("key", 5)
			tokens := r.keys(t, names...)
			held := hold(t, r.clean, "held")
			commits := holdCommits(t, r.Env)
			c := r.gather(t)
			var answered atomic.Int64
			for _, key := range names {
				c.add(t.Context(), func(ctx context.Context) {
					defer answered.Add(1)
					r.wantGranted(ctx, t, key, tokens[key])
				})
			}
			c.add(t.Context(), func(ctx context.Context) {
				defer answered.Add(1)
				r.wantReleased(ctx, t, held)
			})
			alone := make(chan struct{}) // a call of the pipeline is asked again
			asked := sync.OnceFunc(func() { close(alone) })
			c.running.Go(func() {
				session := commits.waiting(t)
				if n := answered.Load(); n > 0 {
					t.Errorf("%d calls were answered before their commit", n)
				}
				for _, key := range append(names, held.Key) {
					if row := r.row(t, key); row.Held != (key == held.Key) {
						t.Errorf("before the commit the row is %+v", row)
					}
				}
				end(t, commits, session, alone)
				commits.letGo(t)
			})
			ops := c.run(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
				if op.Executes() && strings.Contains(op.Query, "acquire-update */") {
					asked()
				}
				return faultdb.None
			}))
			if sent := piped(ops); len(sent) != 1 || sent[0] != len(names)+1 {
				t.Errorf("%v plain statements went together", sent)
			}
		})
	}
}

// A transaction of someone else inserts two of the keys in the other order. The server ends the
// circle by an error of the pipeline, and each of its calls is answered all the same.
func TestADeadlockOfAPipelineIsResolved(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Insert, 1)
	names := numbered("key", 4)
	tx, err := r.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is over by then
	insert := func(key string) error {
		_, err := tx.ExecContext(t.Context(), r.SQL(
			`INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at) VALUES (?, 1, {now}, {now})
				ON CONFLICT DO NOTHING`), []byte(key))
		return err
	}
	// Only the pipeline looks for circles, so that it is what the server ends.
	if _, err := tx.ExecContext(t.Context(), `SET LOCAL deadlock_timeout = '1h'`); err != nil {
		t.Fatal(err)
	}
	if err := insert(names[2]); err != nil {
		t.Fatal(err)
	}
	c := r.gather(t)
	for _, key := range names {
		c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, key, 0) })
	}
	c.running.Go(func() {
		sessionThatWaits(t, r.Env, `locktype = 'transactionid'`)
		if err := insert(names[0]); err != nil {
			t.Error(err)
		}
		_ = tx.Rollback()
	})
	plain := 0
	for _, op := range c.run(nil) {
		if n := strings.Count(op.Query, "acquire-insert */"); op.Executes() && n > 1 {
			plain = n
		}
	}
	if plain != len(names) {
		t.Errorf("%d plain statements went together", plain)
	}
}

// A row that another transaction has locked is answered later, and the rest of its pipeline at
// once.
func TestALockedRowKeepsNoPipelineWaiting(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 1)
	names := numbered("key", 5)
	tokens := r.keys(t, names...)
	held := hold(t, r.clean, "held")
	tx, err := r.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is over by then
	for _, key := range []string{names[0], held.Key} {
		_, err := tx.ExecContext(t.Context(),
			r.SQL(`SELECT 1 FROM {rowlock} WHERE {key} = ? FOR UPDATE`), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
	}
	c := r.gather(t)
	var free sync.WaitGroup
	for i, key := range names {
		if i > 0 {
			free.Add(1)
		}
		c.add(t.Context(), func(ctx context.Context) {
			r.wantGranted(ctx, t, key, tokens[key])
			if i > 0 {
				free.Done()
			}
		})
	}
	c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, held) })
	c.running.Go(func() {
		free.Wait() // for ever, if they waited for the locked rows
		_ = tx.Rollback()
	})
	if sent := piped(c.run(nil)); len(sent) != 1 || sent[0] != len(names)+1 {
		t.Errorf("%v plain statements went together", sent)
	}
}
