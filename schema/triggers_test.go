package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// onTriggers runs f on MySQL and MariaDB, with an ordinary table and with a partitioned one. The
// servers take LOAD DATA LOCAL, because a test that came before need not have let them.
func onTriggers(t *testing.T, f func(v vault)) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			for name, create := range map[string]string{
				"table":       guarded,
				"partitioned": guarded + ` PARTITION BY HASH (id) PARTITIONS 3`,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f(openVaultOn(t, s, create, `CREATE VIEW seen_account AS SELECT * FROM account`,
						`SET GLOBAL local_infile = 1`))
				})
			}
		})
	}
}

// onServers runs f on MySQL and MariaDB.
func onServers(t *testing.T, f func(t *testing.T, s server)) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) { t.Parallel(); f(t, s) })
	}
}

// session is one connection, which transactions of DoTx and others share.
type session struct {
	vault
	*sql.Conn
}

func (v vault) session() session {
	v.Helper()
	conn, err := v.db.Conn(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { _ = conn.Close() })
	return session{v, conn}
}

func (s session) begin(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
	tx, err := s.BeginTx(ctx, opts)
	return tx, tx, err
}

// locked runs statements in DoTx.
func (s session) locked(key string, statements []string, opts ...rowlock.Option) error {
	s.Helper()
	return rowlock.DoTxOn(s.Context(), s.locks, s.begin, key, func(ctx context.Context, tx *sql.Tx) error {
		return each(ctx, tx, statements)
	}, opts...)
}

func each(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// plain runs statements in a transaction without a fence.
func (s session) plain(statements ...string) error {
	s.Helper()
	tx, err := s.BeginTx(s.Context(), nil)
	if err != nil {
		s.Fatal(err)
	}
	defer tx.Rollback()
	if err := each(s.Context(), tx, statements); err != nil {
		return err
	}
	return tx.Commit()
}

// rowWrites are the ways to write to account 1.
var rowWrites = []string{
	`INSERT INTO account VALUES (1, 5) ON DUPLICATE KEY UPDATE balance = balance + 5`,
	`REPLACE INTO account VALUES (1, 7)`,
	`UPDATE account SET balance = balance + 1 WHERE id = 1`,
	`UPDATE IGNORE account SET balance = balance + 1 WHERE id = 1`,
	`UPDATE account AS a JOIN account AS b ON a.id = b.id SET a.balance = a.balance + 3 WHERE b.id = 1`,
	`UPDATE seen_account SET balance = balance + 8 WHERE id = 1`,
	`LOAD DATA LOCAL INFILE 'Reader::one' REPLACE INTO TABLE account FIELDS TERMINATED BY ' '`,
	`DELETE a FROM account AS a JOIN account AS b ON a.id = b.id WHERE b.id = 1`,
	`INSERT INTO account VALUES (1, 5)`,
	`DELETE FROM account WHERE id = 1`,
	`INSERT IGNORE INTO account VALUES (1, 5)`,
	`DELETE IGNORE FROM account WHERE id = 1`,
	`INSERT INTO account SELECT 1, 5`,
}

func init() {
	mysql.RegisterReaderHandler("one", func() io.Reader { return strings.NewReader("1 9\n") })
}

func TestTriggersRefuseWritesWithoutAFence(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s := v.session()
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			v.passes(level, must(s.ExecContext(v.Context(), `SET SESSION TRANSACTION ISOLATION LEVEL `+level)))
			for _, write := range rowWrites {
				v.refused(level+" "+write, s.plain(write))
				v.refused(level+" "+write+" by itself", must(s.ExecContext(v.Context(), write)))
				v.refused(level+" "+write+" under another lock", s.locked("account/2", []string{write}))
				v.passes(level+" "+write, s.locked("account/1", []string{write}))
				v.refused(level+" after "+write, s.plain(`DELETE FROM account WHERE id = 2`))
			}
		}
		v.passes("no row", s.plain(`DELETE FROM account WHERE id = 99`))
	})
}

// Nothing waits for another session's fence, but at SERIALIZABLE, which docs/protect.md says.
func TestTriggersDoNotWaitForAFence(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s := v.session()
		v.passes("patience", must(s.ExecContext(v.Context(), `SET SESSION innodb_lock_wait_timeout = 1`)))
		err := v.locks.DoTx(v.Context(), "account/1", func(ctx context.Context, tx *sql.Tx) error {
			for _, write := range rowWrites[:8] {
				v.refused(write, s.plain(write))
			}
			v.passes("level", must(s.ExecContext(v.Context(), `SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE`)))
			var my *mysql.MySQLError
			if err := s.plain(rowWrites[2]); !errors.As(err, &my) || my.Number != 1205 {
				v.Errorf("at SERIALIZABLE: %v, want a wait", err)
			}
			return nil
		})
		v.passes("DoTx", err)
	})
}

func TestTriggersAskForBothKeysOfARowThatMoves(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s := v.session()
		move := []string{`UPDATE account SET id = 9 WHERE id = 1`}
		v.refused("the old key", s.locked("account/1", move))
		v.refused("the new key", s.locked("account/9", move))
		err := rowlock.DoTxOn(v.Context(), v.locks, s.begin, []string{"account/1", "account/9"},
			func(ctx context.Context, tx *sql.Tx) error { return each(ctx, tx, move) })
		v.passes("both", err)
	})
}

// What DoTx has fenced is over with it, also if it keeps the lock or has failed.
func TestNoMarkOfDoTxIsLeft(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s := v.session()
		write := `UPDATE account SET balance = balance + 1 WHERE id = 1`
		l := v.lock("account/1")
		v.passes("Lock.DoTx", l.DoTx(v.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return each(ctx, tx, []string{write})
		}))
		if n := one[int](v, v.db, `SELECT fenced_by FROM rowlock WHERE `+"`key`"+` = 'account/1'`); n != 0 {
			v.Error("Lock.DoTx has left its mark")
		}
		l.Unlock(v.Context())
		failed := errors.New("failed")
		err := rowlock.DoTxOn(v.Context(), v.locks, s.begin, "account/1", func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(each(ctx, tx, []string{write}), failed)
		})
		if !errors.Is(err, failed) {
			v.Error(err)
		}
		v.refused("after a rollback", s.plain(write))
		v.refused("after ROLLBACK TO", s.plain(`SAVEPOINT a`,
			"UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token, owner = REPEAT('o', 16) WHERE `key` = 'account/1'",
			`ROLLBACK TO a`, write))
	})
}

func TestWhatFollowsAHiddenDeadlockIsRefused(t *testing.T) {
	onTriggers(t, func(v vault) {
		exec(v, v.db, `CREATE TABLE other (id int PRIMARY KEY, n int)`)
		exec(v, v.db, `INSERT INTO other VALUES (1, 0), (2, 0)`)
		v.protect(accounts())
		s := v.session()
		var after error
		err := rowlock.DoTxOn(v.Context(), v.locks, s.begin, "account/1", func(ctx context.Context, tx *sql.Tx) error {
			rival, err := v.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer rival.Rollback()
			// The rival has changed more rows, so that it is not the victim.
			if err := each(ctx, rival, []string{`INSERT INTO other VALUES (11, 0), (12, 0), (13, 0), (14, 0), (15, 0), (16, 0), (17, 0), (18, 0), (19, 0)`, `UPDATE other SET n = 1 WHERE id = 1`}); err != nil {
				return err
			}
			if err := each(ctx, tx, []string{`UPDATE other SET n = 1 WHERE id = 2`}); err != nil {
				return err
			}
			waits := make(chan error, 1)
			go func() { waits <- each(ctx, rival, []string{`UPDATE other SET n = 2 WHERE id = 2`}) }()
			hidden := each(ctx, tx, []string{`UPDATE other SET n = 2 WHERE id = 1`})
			if rivals := <-waits; rivals != nil || hidden == nil {
				return fmt.Errorf("the victim is the other: %w", errors.Join(rivals, errors.New("no deadlock")))
			}
			after = each(ctx, tx, []string{`UPDATE account SET balance = 666 WHERE id = 1`})
			return nil
		})
		v.refused("after the deadlock", after)
		if !errors.Is(err, rowlock.ErrUnknown) {
			v.Errorf("DoTx: %v, want ErrUnknown", err)
		}
	})
}

// By hand the mark is committed, and docs/protect.md says for how long it is believed.
func TestAFenceByHandIsAdvisory(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s, other := v.session(), v.session()
		write := `UPDATE account SET balance = balance + 1 WHERE id = 1`
		fenced := func(l *rowlock.Lock, statements ...string) error {
			tx, err := s.BeginTx(v.Context(), nil)
			if err != nil {
				v.Fatal(err)
			}
			defer tx.Rollback()
			if err := l.Fence(v.Context(), tx); err != nil {
				return err
			}
			if err := each(v.Context(), tx, statements); err != nil {
				return err
			}
			if len(statements) > 1 {
				if err := l.UnlockTx(v.Context(), tx); err != nil {
					return err
				}
				v.refused("after UnlockTx", each(v.Context(), tx, statements[:1]))
			}
			return tx.Commit()
		}
		l := v.lock("account/1")
		v.passes("fenced", fenced(l, write))
		v.passes("which docs/protect.md says", s.plain(write))
		v.refused("another session", other.plain(write))
		l.Unlock(v.Context())
		v.refused("after Unlock", s.plain(write))
		again := v.lock("account/1")
		v.refused("under a later grant", s.plain(write))
		v.passes("fenced", fenced(again, write, `DO 0`))
		v.refused("the lock was released in the transaction", s.plain(write))
	})
}

func TestNoReadersFencePermitsWrites(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		s := v.session()
		write := `UPDATE account SET balance = balance + 1 WHERE id = 1`
		v.refused("shared", s.locked("account/1", []string{write}, rowlock.Shared()))
		l := v.lock("account/1")
		tx, err := s.BeginTx(v.Context(), nil)
		if err != nil {
			v.Fatal(err)
		}
		v.passes("fence", l.Fence(v.Context(), tx))
		v.passes("commit", tx.Commit())
		v.passes("downgrade", l.Downgrade(v.Context()))
		v.refused("a reader that has fenced as a writer", s.plain(write))
	})
}

func TestKeysOfColumnsAreTheirTextOnTriggers(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded, `CREATE TABLE item (tenant char(36) COLLATE utf8mb4_general_ci, name varchar(20) CHARACTER SET latin1,
			size bigint unsigned, note text CHARACTER SET utf8mb4, PRIMARY KEY (tenant, name))`)
		v.protect(schema.Protection{Table: "item", Key: "{tenant}/ï {name}:{size}%s{note}"})
		const key = "6EC0bd7f/ï Ä :18446744073709551615%s☃𝄞\\"
		insert := func(name string) []string {
			return []string{fmt.Sprintf(`INSERT INTO item VALUES ('6EC0bd7f', '%s', 18446744073709551615, CONCAT('☃𝄞', CHAR(92)))`, name)}
		}
		on := v.session()
		v.refused("another text", on.locked(key, insert("Ä")))
		v.passes("the same", on.locked(key, insert("Ä ")))
		v.refused("a text that only its collation takes for the same", on.locked(key, []string{`UPDATE item SET tenant = '6ec0BD7f'`}))
		v.refused("a row without a key", on.locked(key, []string{`UPDATE item SET size = NULL`}))
	})
}

func TestPrefixesAndKeysWithoutColumnsOnTriggers(t *testing.T) {
	onTriggers(t, func(v vault) {
		s := v.session()
		write := []string{`UPDATE account SET balance = balance + 1`}
		v.protect(schema.Protection{Table: "account", Key: "shop/*"})
		v.refused("beside", s.locked("shop", write))
		v.refused("beside", s.locked("shoq", write))
		v.passes("any that begins so", s.locked("shop/\xff\x00", write))
		v.protect(schema.Protection{Table: "account", Key: "it/{id}/*"})
		v.refused("of one row", s.locked("it/1/west", write))
		v.passes("of the row", s.locked("it/1/west", []string{write[0] + ` WHERE id = 1`}))
		v.protect(schema.Protection{Table: "account", Key: "accounts"})
		v.refused("another", s.locked("account", write))
		v.passes("the table's", s.locked("accounts", write))
		v.passes("which docs/protect.md says", s.plain(`TRUNCATE account`))
	})
}

func TestTriggersWarnOnly(t *testing.T) {
	onTriggers(t, func(v vault) {
		p := accounts()
		p.WarnOnly = true
		v.protect(p)
		s := v.session()
		v.passes("fenced", s.locked("account/1", []string{`UPDATE account SET balance = 4 WHERE id = 1`}))
		for range 150 {
			v.passes("forgotten", s.plain(`UPDATE account SET balance = balance + 1 WHERE id = 2`))
		}
		got := v.protected()
		if len(got) != 1 || got[0].Unfenced != 150 || len(got[0].Writers) != 1 || got[0].Writers[0].Role != "root" ||
			got[0].Writers[0].Key != "account/2" || got[0].Writers[0].Seen != 100 {
			v.Errorf("got %+v", got)
		}
		v.protect(accounts())
		v.refused("in earnest", s.plain(`UPDATE account SET balance = balance + 1 WHERE id = 2`))
		if got := v.protected(); len(got) != 1 || got[0].Unfenced != 0 || got[0].WarnOnly {
			v.Errorf("in earnest: %+v", got)
		}
		v.leavesNothing()
	})
}

// What the old triggers write to goes only when they have gone.
func TestACountOutlivesAProtectThatFails(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(accounts())
		name := one[string](v, v.db, `SELECT trigger_name FROM information_schema.triggers
			WHERE trigger_schema = DATABASE() AND event_manipulation = 'INSERT'`)
		v.leavesNothing()
		p := accounts()
		p.WarnOnly = true
		v.protect(p)
		exec(v, v.db, `CREATE TABLE person (id BIGINT)`)
		exec(v, v.db, "CREATE TRIGGER `"+name+"` AFTER INSERT ON person FOR EACH ROW SET @inserted = 1")
		if err := schema.Protect(v.Context(), v.db, v.server.dialect(), accounts()); err == nil {
			v.Error("a trigger was made whose name another has")
		}
		v.passes("forgotten", v.session().plain(`UPDATE account SET balance = balance + 1 WHERE id = 2`))
		if got := v.protected(); len(got) != 2 || !got[0].WarnOnly || got[0].Unfenced != 1 { // and person
			v.Errorf("got %+v", got)
		}
		exec(v, v.db, "DROP TRIGGER `"+name+"`")
		v.leavesNothing()
	})
}

// leavesNothing ends the protection of account.
func (v vault) leavesNothing() {
	v.Helper()
	v.passes("Unprotect", schema.Unprotect(v.Context(), v.db, v.server.dialect(), "account"))
	exec(v, v.db, `UPDATE account SET balance = 1`)
	if n := one[int](v, v.db, `SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()`); n != 0 {
		v.Errorf("%d triggers are left", n)
	}
	equal(v, "tables", slices.DeleteFunc(v.server.listTables(v, v.db, ""), func(n string) bool {
		return strings.HasSuffix(n, "account") || n == "person"
	}), ourTables)
	if err := schema.Unprotect(v.Context(), v.db, v.server.dialect(), "account"); !errors.Is(err, rowlock.ErrTable) {
		v.Errorf("what is not protected: %v, want ErrTable", err)
	}
}

func TestProtectedTellsWhichTriggersAreThere(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded, `CREATE TABLE person (id bigint PRIMARY KEY)`)
		place := one[string](t, v.db, `SELECT DATABASE()`)
		v.protect(accounts())
		v.protect(accounts())
		if got := v.protected(); len(got) != 1 || got[0].Table != place+".account" || got[0].Key != "account/{id}" || len(got[0].Missing) != 0 {
			v.Errorf("got %+v", got)
		}
		exec(t, v.db, `DROP TRIGGER `+one[string](t, v.db, `SELECT trigger_name FROM information_schema.triggers
			WHERE trigger_schema = DATABASE() AND event_manipulation = 'UPDATE'`))
		if got := v.protected(); len(got) != 1 || !slices.Equal(got[0].Missing, []string{"update"}) {
			v.Errorf("got %+v", got)
		}
		exec(t, v.db, `ALTER TABLE account ADD owner bigint, ADD FOREIGN KEY (owner) REFERENCES person (id) ON DELETE SET NULL`)
		if got := v.protected(); len(got) != 1 || !slices.Equal(got[0].Missing, []string{"update", "delete"}) {
			v.Errorf("got %+v", got)
		}
		for _, remove := range []error{schema.Down(t.Context(), v.db, s.dialect()), schema.Uninstall(t.Context(), v.db, s.dialect())} {
			if !errors.Is(remove, rowlock.ErrHeld) || !strings.Contains(remove.Error(), "account") {
				t.Errorf("got %v, want ErrHeld that names the table", remove)
			}
		}
		v.leavesNothing()
	})
}

func TestTriggersAsSQL(t *testing.T) {
	onTriggers(t, func(v vault) {
		p := accounts()
		p.WarnOnly = true
		for _, p := range []schema.Protection{accounts(), p} {
			up, down, err := schema.ProtectSQL(v.server.dialect(), p)
			if err != nil {
				v.Fatal(err)
			}
			run := func(text string) {
				for _, part := range strings.Split(text, "-- +goose Statement") {
					if trigger, ok := strings.CutPrefix(part, "Begin\n"); ok {
						exec(v, v.db, strings.TrimSuffix(trigger, ";\n"))
						continue
					}
					for _, statement := range strings.SplitAfter(strings.TrimPrefix(part, "End\n"), ";\n") {
						if strings.TrimSpace(statement) != "" {
							exec(v, v.db, statement)
						}
					}
				}
			}
			run(up)
			err = v.session().plain(`UPDATE account SET balance = balance + 1 WHERE id = 1`)
			if unfenced(err) == p.WarnOnly {
				v.Errorf("%+v: %v", p, err)
			}
			if got := v.protected(); len(got) != 1 || got[0].WarnOnly != p.WarnOnly {
				v.Errorf("got %+v", got)
			}
			run(down)
			v.passes("not protected", v.session().plain(`UPDATE account SET balance = balance + 1 WHERE id = 1`))
		}
	})
}

func TestUsersThatHaveLoggedInAreExempt(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded)
		p := accounts()
		p.Exempt = []string{"other", "root"}
		v.protect(p)
		write := `UPDATE account SET balance = balance + 1 WHERE id = 1`
		v.passes("exempt", v.session().plain(write))
		user, db := v.user()
		exec(t, v.db, `GRANT SELECT, UPDATE ON account TO `+user)
		if _, err := db.ExecContext(t.Context(), write); !unfenced(err) {
			t.Errorf("another user: %v", err)
		}
		p.Exempt = []string{strings.Trim(strings.Split(user, "@")[0], "'")}
		v.protect(p)
		v.passes("the user", must(db.ExecContext(t.Context(), write)))
		v.refused("no more", v.session().plain(write))
	})
}

// user returns a user who may connect, and its sessions.
func (v vault) user() (string, *sql.DB) {
	v.Helper()
	name := freshName()[:20]
	user := "'" + name + "'@'%'"
	exec(v, v.db, `CREATE USER `+user+` IDENTIFIED BY 'secret'`)
	v.Cleanup(func() { exec(v, v.db, `DROP USER `+user) })
	exec(v, v.db, `GRANT SELECT ON rowlock_meta TO `+user)
	cfg, err := mysql.ParseDSN(v.dsn)
	if err != nil {
		v.Fatal(err)
	}
	cfg.User, cfg.Passwd = name, "secret"
	return user, open(v, "mysql", cfg.FormatDSN())
}

// A user who may lock the row and not write it has fences, as ever, and no mark.
func TestAFenceThatMayNotMarkPermitsNoWritesToProtectedTables(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded, `CREATE TABLE plain (id bigint PRIMARY KEY)`)
		v.protect(accounts())
		user, db := v.user()
		exec(t, v.db, `GRANT SELECT, DELETE ON rowlock TO `+user)
		exec(t, v.db, `GRANT SELECT, UPDATE ON account TO `+user)
		exec(t, v.db, `GRANT INSERT ON plain TO `+user)
		begin := func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
			tx, err := db.BeginTx(ctx, opts)
			return tx, tx, err
		}
		fenced := func(statement string) error {
			return rowlock.DoTxOn(t.Context(), v.locks, begin, "account/1", func(ctx context.Context, tx *sql.Tx) error {
				return each(ctx, tx, []string{statement})
			}, rowlock.MinHold(time.Millisecond))
		}
		v.passes("a table that is not protected", fenced(`INSERT INTO plain VALUES (1)`))
		v.refused("one that is", fenced(`UPDATE account SET balance = 1 WHERE id = 1`))
	})
}

// The key has MariaDB's UUIDs as every program writes them.
func TestKeysHaveUUIDsInLowerCase(t *testing.T) {
	on(t, onMariaDB, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded, `CREATE TABLE item (id uuid PRIMARY KEY)`)
		v.protect(schema.Protection{Table: "item", Key: "item/{id}"})
		const id = "6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b"
		insert := []string{`INSERT INTO item VALUES ('` + strings.ToUpper(id) + `')`}
		v.refused("upper case", v.session().locked("item/"+strings.ToUpper(id), insert))
		v.passes("lower case", v.session().locked("item/"+id, insert))
	})
}

func TestProtectSaysWhichRightTriggersLack(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded)
		user, db := v.user()
		exec(t, v.db, `GRANT SELECT ON account TO `+user)
		steps := []struct{ says, grant string }{
			{"SELECT", `GRANT SELECT ON rowlock TO ` + user},
			{"TRIGGER", `GRANT TRIGGER ON account TO ` + user},
			{"log_bin_trust_function_creators", ``},
		}
		if one[int](t, v.db, `SELECT @@log_bin`) == 0 {
			steps = steps[:2]
		} else {
			steps = slices.Delete(steps, 1, 2)
			exec(t, v.db, `GRANT TRIGGER ON account TO `+user)
		}
		for _, step := range steps {
			err := schema.Protect(t.Context(), db, s.dialect(), accounts())
			if !errors.Is(err, rowlock.ErrPrivilege) || !strings.Contains(fmt.Sprint(err), step.says) {
				t.Errorf("before %s: %v", step.grant, err)
			}
			if step.grant != "" {
				exec(t, v.db, step.grant)
			}
		}
		if steps[1].grant != "" {
			v.passes("with all rights", schema.Protect(t.Context(), db, s.dialect(), accounts()))
			v.refused("protected", v.session().plain(`DELETE FROM account`))
			v.passes("fenced", v.session().locked("account/1", []string{`DELETE FROM account WHERE id = 1`}))
		}
	})
}

func TestWhatTriggersCannotProtectIsRefused(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded, `CREATE VIEW seen_account AS SELECT * FROM account`,
			`CREATE TABLE person (id bigint PRIMARY KEY) ENGINE = InnoDB`,
			`CREATE TABLE child (id bigint PRIMARY KEY, up bigint, FOREIGN KEY (up) REFERENCES person (id) ON DELETE CASCADE)`,
			`CREATE TABLE heir (id bigint PRIMARY KEY, up bigint, FOREIGN KEY (up) REFERENCES person (id) ON UPDATE SET NULL)`,
			`CREATE TABLE lax (id bigint PRIMARY KEY) ENGINE = MyISAM`,
			`CREATE TABLE odd (n decimal(9, 2), at date, b varbinary(9), z int(5) zerofill, e enum('a'), f double, c char(3) CHARACTER SET binary)`)
		for _, c := range []struct {
			table, key, says string
			is               error
		}{
			{"seen_account", "k", "view", rowlock.ErrTable},
			{"child", "k", "CASCADE", rowlock.ErrTable},
			{"heir", "k", "CASCADE", rowlock.ErrTable},
			{"lax", "k", "MyISAM", rowlock.ErrTable},
			{"nowhere", "k", "no such table", rowlock.ErrTable},
			{"rowlock", "k", "has the locks", rowlock.ErrTable},
			{"odd", "k/{id}", "no column id", rowlock.ErrTable},
			{"odd", "k/{n}", "decimal", rowlock.ErrTable},
			{"odd", "k/{at}", "date", rowlock.ErrTable},
			{"odd", "k/{b}", "varbinary", rowlock.ErrTable},
			{"odd", "k/{z}", "zerofill", rowlock.ErrTable},
			{"odd", "k/{e}", "enum", rowlock.ErrTable},
			{"odd", "k/{f}", "double", rowlock.ErrTable},
			{"odd", "k/{c}", "binary", rowlock.ErrTable},
			{"odd", "it's", "quote", rowlock.ErrConfig},
			{"odd", "k/{n`}", "n`", rowlock.ErrConfig},
		} {
			err := schema.Protect(t.Context(), v.db, s.dialect(), schema.Protection{Table: c.table, Key: c.key})
			if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%s by %s: %v, want %v that says %q", c.table, c.key, err, c.is, c.says)
			}
		}
		if n := one[int](t, v.db, `SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()`); n != 0 {
			t.Errorf("%d triggers were made", n)
		}
	})
}

// Each part of a trigger is needed: without it a write passes that a test above has refused.
func TestEachPartOfATriggerIsNeeded(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const write = `UPDATE account SET balance = balance + 1 WHERE id = 1`
		for _, c := range []struct{ name, part, with, marks, write string }{
			{"the session", "r.fenced_by = CONNECTION_ID()", "TRUE", "fenced_by = 1, fenced_token = token", write},
			{"the token", "r.fenced_token = r.token", "TRUE", "fenced_token = token - 1", write},
			{"the owner", "r.owner IS NOT NULL", "TRUE", "owner = NULL", write},
			{"readers", "r.expires_at < '9999-01-01'", "TRUE", "expires_at = '9999-01-01'", write},
			{"the placement", "r.placement = 0", "TRUE", "placement = 1", write},
			{"the key", "r.`key` =", "TRUE OR r.`key` =", "owner = owner", `UPDATE account SET balance = balance + 1 WHERE id = 2`},
			{"the new key", "IF NOT LEFT(", "IF FALSE AND NOT LEFT(", "owner = owner", `UPDATE account SET id = 8 WHERE id = 1`},
			{"the refusal", "IF fenced = 0", "IF FALSE", "owner = NULL", write},
		} {
			v := openVaultOn(t, s, guarded)
			v.protect(accounts())
			on := v.session()
			v.lock("account/1")
			marks := "UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token, " + c.marks + " WHERE `key` = 'account/1'"
			v.refused(c.name, on.plain(marks, c.write))
			name := one[string](t, v.db, `SELECT trigger_name FROM information_schema.triggers
				WHERE trigger_schema = DATABASE() AND event_manipulation = 'UPDATE'`)
			text := one[string](t, v.db, `SELECT action_statement FROM information_schema.triggers
				WHERE trigger_schema = DATABASE() AND event_manipulation = 'UPDATE'`)
			broken := strings.ReplaceAll(text, c.part, c.with)
			if broken == text {
				t.Fatalf("%q is not in %s", c.part, text)
			}
			exec(t, v.db, `DROP TRIGGER `+name)
			exec(t, v.db, `CREATE TRIGGER broken AFTER UPDATE ON account FOR EACH ROW `+broken)
			if err := on.plain(marks, c.write); unfenced(err) {
				t.Errorf("without %s: %v, which no test would notice", c.name, err)
			}
		}
	})
}

// What docs/protect.md says of the servers with triggers of rows, as BenchmarkProtect.
func BenchmarkTriggers(b *testing.B) {
	for _, server := range []server{onMySQL, onMariaDB} {
		for _, c := range []struct{ name, key, lock, where string }{
			{"one row", "account/{id}", "account/1", " WHERE id = 1"},
			{"10,000 rows, one key", "all", "all", ""},
		} {
			b.Run(server.name+" "+c.name, func(b *testing.B) {
				v := openVaultOn(b, server, guarded, strings.ReplaceAll(guarded, "account", "plain"))
				exec(b, v.db, `INSERT INTO account (id) WITH RECURSIVE n (id) AS (SELECT 4 UNION ALL SELECT id + 1 FROM n WHERE id < 1000) SELECT id FROM n`)
				exec(b, v.db, `INSERT IGNORE INTO account (id) SELECT a.id * 1000 + b.id FROM account AS a JOIN account AS b WHERE a.id < 10`)
				exec(b, v.db, `INSERT INTO plain SELECT * FROM account`)
				v.protect(schema.Protection{Table: "account", Key: c.key})
				v.compares(b, c.lock, c.where, func(int) {})
			})
		}
	}
}

// A pool whose sessions read few rows, or in another character set, would tell that triggers are
// missing.
func TestProtectedIsNotCutShort(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		v := openVaultOn(t, s, guarded)
		v.protect(accounts())
		sep := map[bool]string{true: "&", false: "?"}[strings.Contains(v.dsn, "?")]
		for _, setting := range []string{
			"sql_select_limit=0", "sql_select_limit=1", "sql_big_selects=0&max_join_size=1", "character_set_results=utf16",
		} {
			db := open(t, "mysql", v.dsn+sep+setting)
			got, err := schema.Protected(t.Context(), db, s.dialect())
			if err != nil || len(got) != 1 || len(got[0].Missing) != 0 || got[0].Key != accounts().Key {
				t.Errorf("with %s: %+v, %v", setting, got, err)
			}
		}
	})
}

// A server on Windows has every name of a table in small letters, and takes it in any.
func TestATableIsProtectedOnceInWhateverLettersItIsNamed(t *testing.T) {
	a := standby.MakeAlone(t, "mariadb", []string{"--lower-case-table-names=1"})
	d := onMariaDB.dialect()
	migrate(t, onMariaDB, a.DB)
	exec(t, a.DB, "CREATE TABLE Account (id INT PRIMARY KEY) ENGINE = InnoDB")
	for _, p := range []schema.Protection{
		{Table: "Account", Key: "account/{id}"}, {Table: "ACCOUNT", Key: "other/{id}"}, {Table: "account", Key: "last/{id}"},
	} {
		if err := schema.Protect(t.Context(), a.DB, d, p); err != nil {
			t.Fatal(err)
		}
		if n := one[int](t, a.DB, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()"); n != 3 {
			t.Errorf("after %+v there are %d triggers, want 3", p, n)
		}
	}
	if err := schema.Unprotect(t.Context(), a.DB, d, "Account"); err != nil {
		t.Error(err)
	}
	if err := schema.Protect(t.Context(), a.DB, d, schema.Protection{Table: "RowLock", Key: "all"}); !errors.Is(err, lease.ErrTable) {
		t.Errorf("the table of locks is protected: %v", err)
	}
}
