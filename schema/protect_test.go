package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/schema"
)

// vault is a database with a table that is protected, and locks.
type vault struct {
	testing.TB
	server server
	dsn    string
	db     *sql.DB
	locks  *rowlock.Client
}

// guarded are accounts 1 to 3, each under the lock "account/" and its id.
const guarded = `CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL DEFAULT 0)`

func openVault(t testing.TB, create ...string) vault {
	t.Helper()
	return openVaultOn(t, onPostgres, create...)
}

func openVaultOn(t testing.TB, s server, create ...string) vault {
	t.Helper()
	driver, dsn := s.fresh(t, s)
	v := vault{TB: t, server: s, dsn: dsn, db: open(t, driver, dsn)}
	migrate(t, v.server, v.db)
	for _, statement := range append(create, `INSERT INTO account (id) VALUES (1), (2), (3)`) {
		exec(t, v.db, statement)
	}
	var err error
	if v.locks, err = rowlock.Open(v.db, v.server.dialect(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.locks.Close() })
	return v
}

func (v vault) protect(p schema.Protection) {
	v.Helper()
	if err := schema.Protect(v.Context(), v.db, v.server.dialect(), p); err != nil {
		v.Fatal(err)
	}
}

func accounts() schema.Protection {
	return schema.Protection{Table: "account", Key: "account/{id}"}
}

// lock returns a lock that is held until the test ends.
func (v vault) lock(key string) *rowlock.Lock {
	v.Helper()
	l, err := v.locks.Lock(v.Context(), key)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { l.Unlock(context.Background()) })
	return l
}

// in runs statements in a transaction that has fenced locks, and commits it if none has failed.
func (v vault) in(locks []*rowlock.Lock, statements ...string) error {
	v.Helper()
	tx, err := v.db.BeginTx(v.Context(), nil)
	if err != nil {
		v.Fatal(err)
	}
	defer tx.Rollback()
	for _, l := range locks {
		if err := l.Fence(v.Context(), tx); err != nil {
			v.Fatal(err)
		}
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(v.Context(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// unfenced reports whether err is the refusal of a protected table.
func unfenced(err error) bool {
	var state interface{ SQLState() string }
	var my *mysql.MySQLError
	return errors.As(err, &state) && state.SQLState() == "P0RLF" || errors.As(err, &my) && string(my.SQLState[:]) == "P0RLF"
}

func (v vault) refused(what string, err error) {
	v.Helper()
	if !unfenced(err) {
		v.Errorf("%s: %v, want a refusal", what, err)
	}
}

func (v vault) passes(what string, err error) {
	v.Helper()
	if err != nil {
		v.Errorf("%s: %v", what, err)
	}
}

// writes are the ways to write to account 1, and to one that is not there.
var writes = map[string]string{
	"INSERT":             `INSERT INTO account VALUES (7, 0)`,
	"UPDATE":             `UPDATE account SET balance = 1 WHERE id = 1`,
	"DELETE":             `DELETE FROM account WHERE id = 1`,
	"ON CONFLICT UPDATE": `INSERT INTO account VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET balance = 5`,
	"MERGE": `MERGE INTO account USING (VALUES (1)) AS v (id) ON v.id = account.id
		WHEN MATCHED THEN UPDATE SET balance = 6`,
	"a view": `UPDATE seen_account SET balance = 8 WHERE id = 1`,
	"a CTE":  `WITH w AS (UPDATE account SET balance = 9 WHERE id = 1 RETURNING id) SELECT count(*) FROM w`,
}

// partitioned is account in two partitions, of which the second is attached by the test.
const partitioned = `CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
	CREATE TABLE account_low PARTITION OF account FOR VALUES FROM (0) TO (100)`

// onBoth runs f with an ordinary table and with a partitioned one, whose triggers are of rows.
func onBoth(t *testing.T, f func(v vault)) {
	for name, create := range map[string]string{"table": guarded, "partitioned": partitioned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(openVault(t, create, `CREATE VIEW seen_account AS SELECT * FROM account`))
		})
	}
}

func TestAProtectedTableRefusesWritesWithoutAFence(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l, other := v.lock("account/1"), v.lock("account/2")
		seventh := v.lock("account/7")
		for name, write := range writes {
			mine := l
			if name == "INSERT" {
				mine = seventh
			}
			v.refused(name, v.in(nil, write))
			v.refused(name+" under another lock", v.in([]*rowlock.Lock{other}, write))
			if name != "DELETE" {
				v.passes(name+" that is fenced", v.in([]*rowlock.Lock{mine}, write))
			}
		}
		v.passes("DELETE that is fenced", v.in([]*rowlock.Lock{l}, writes["DELETE"]))
		v.passes("nothing", v.in(nil, `UPDATE account SET balance = 1 WHERE id = 99`, `DELETE FROM account WHERE id = 99`))
	})
}

func TestAFenceCountsOnlyInItsTransaction(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l := v.lock("account/1")
		v.db.SetMaxOpenConns(12) // the session of a fence is used again
		v.passes("fenced", v.in([]*rowlock.Lock{l}, writes["UPDATE"]))
		v.refused("the next transaction", v.in(nil, writes["UPDATE"]))
		v.refused("one statement", v.in(nil, writes["UPDATE"]))

		// Another session is inside its fenced transaction.
		tx, err := v.db.BeginTx(v.Context(), nil)
		if err != nil {
			v.Fatal(err)
		}
		defer tx.Rollback()
		v.passes("fence", l.Fence(v.Context(), tx))
		v.refused("beside a fenced transaction", v.in(nil, writes["UPDATE"]))
		v.passes("in it", must(tx.ExecContext(v.Context(), writes["UPDATE"])))
	})
}

// A transaction that has begun to write before another one fences and commits sees what that has
// written to the lock's row, with a number above its own.
func TestAFenceThatWasCommittedMeanwhileDoesNotCount(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l := v.lock("account/1")
		tx, err := v.db.BeginTx(v.Context(), nil)
		if err != nil {
			v.Fatal(err)
		}
		defer tx.Rollback()
		v.passes("a number", must(tx.ExecContext(v.Context(), `SELECT txid_current()`)))
		v.passes("another transaction", v.in([]*rowlock.Lock{l}, writes["UPDATE"]))
		v.refused("a later fence", must(tx.ExecContext(v.Context(), writes["UPDATE"])))
	})
}

func must(_ sql.Result, err error) error { return err }

func TestBothKeysOfARowThatMovesAreFenced(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		from, to := v.lock("account/1"), v.lock("account/9")
		const move = `UPDATE account SET id = 9 WHERE id = 1`
		v.refused("the old key", v.in([]*rowlock.Lock{from}, move))
		v.refused("the new key", v.in([]*rowlock.Lock{to}, move))
		v.passes("both", v.in([]*rowlock.Lock{from, to}, move))
	})
}

func TestSavepointsAndFences(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l := v.lock("account/1")
		v.passes("nested savepoints", v.in([]*rowlock.Lock{l}, `SAVEPOINT a`, writes["UPDATE"], `SAVEPOINT b`,
			writes["UPDATE"], `RELEASE b`, writes["UPDATE"], `ROLLBACK TO a`, writes["UPDATE"]))
		// The row's latest version is the savepoint's.
		const again = `UPDATE rowlock SET token = token WHERE key = 'account/1'`
		v.passes("a fence again within", v.in([]*rowlock.Lock{l}, `SAVEPOINT a`, again, writes["UPDATE"],
			`SAVEPOINT b`, again, writes["UPDATE"], `RELEASE b`, writes["UPDATE"], `RELEASE a`, writes["UPDATE"]))
		v.refused("rolled back", v.in(nil, `SAVEPOINT a`, again, writes["UPDATE"], `ROLLBACK TO a`, writes["UPDATE"]))
	})
}

func TestASharedLockPermitsNoWrites(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l, err := v.locks.RLock(v.Context(), "account/1")
		if err != nil {
			v.Fatal(err)
		}
		defer l.Unlock(v.Context())
		v.refused("shared", v.in([]*rowlock.Lock{l}, writes["UPDATE"]))
	})
}

// The row is this transaction's until it ends, so that what a deferred trigger writes after the
// release is as safe as what came before.
func TestARuleOfDoTxHoldsOnProtectedTables(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		exec(v, v.db, `CREATE TABLE entry (account bigint)`)
		exec(v, v.db, `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN UPDATE account SET balance = balance + 1 WHERE id = NEW.account; RETURN NULL; END'`)
		exec(v, v.db, `CREATE CONSTRAINT TRIGGER late AFTER INSERT ON entry DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION late()`)
		err := v.locks.DoTx(v.Context(), "account/1", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE account SET balance = 10 WHERE id = 1`)
			return errors.Join(err, must(tx.ExecContext(ctx, `INSERT INTO entry VALUES (1)`)))
		})
		v.passes("its own key", err)
		if got := one[int](v, v.db, `SELECT balance FROM account WHERE id = 1`); got != 11 {
			v.Errorf("the balance is %d, want 11", got)
		}
		err = v.locks.DoTx(v.Context(), "account/1", func(ctx context.Context, tx *sql.Tx) error {
			return must(tx.ExecContext(ctx, `INSERT INTO entry VALUES (2)`)) // refused by the COMMIT
		})
		v.refused("another key, at COMMIT", err)
		missed := v.locks.DoTx(v.Context(), "account/1", func(ctx context.Context, tx *sql.Tx) error {
			return must(tx.ExecContext(ctx, `UPDATE account SET balance = 1 WHERE id = 2`))
		})
		v.refused("another key", missed)
		if !errors.Is(missed, rowlock.ErrFenced) {
			v.Errorf("in the function: %v, want ErrFenced", missed)
		}
		if !errors.Is(err, rowlock.ErrFenced) {
			v.Errorf("at COMMIT: %v, want ErrFenced", err)
		}
	})
}

func TestTRUNCATE(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		v.refused("with a key of each row", v.in([]*rowlock.Lock{v.lock("account/1")}, `TRUNCATE account`))
		v.protect(schema.Protection{Table: "account", Key: "accounts"})
		v.refused("without the fence", v.in(nil, `TRUNCATE account`))
		v.passes("with the fence", v.in([]*rowlock.Lock{v.lock("accounts")}, `TRUNCATE account`))
	})
}

func TestAKeyWithoutAColumnIsThatOfTheTable(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(schema.Protection{Table: "account", Key: "accounts"})
		l := v.lock("accounts")
		for name, write := range writes {
			v.refused(name, v.in(nil, write))
			v.passes(name, v.in([]*rowlock.Lock{l}, write))
		}
		v.passes("no row", v.in(nil, `DELETE FROM account WHERE id = 99`))
	})
}

func TestAKeyThatEndsWithAStarIsAnyThatBeginsSo(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(schema.Protection{Table: "account", Key: "shop/*"})
		l, other := v.lock("shop/\xff\x00"), v.lock("shop")
		later := v.lock("shoq")
		for name, write := range writes {
			v.refused(name, v.in([]*rowlock.Lock{other, later}, write))
			v.passes(name, v.in([]*rowlock.Lock{l}, write))
		}
		v.protect(schema.Protection{Table: "account", Key: "shop/{id}/*"})
		sub := v.lock("shop/1/west")
		v.refused("of another row", v.in([]*rowlock.Lock{sub}, `UPDATE account SET balance = 1 WHERE id = 2`))
		v.passes("of the row", v.in([]*rowlock.Lock{sub}, `INSERT INTO account VALUES (1) ON CONFLICT DO NOTHING`,
			`UPDATE account SET balance = 1 WHERE id = 1`))
	})
}

func TestKeysAreTheTextOfTheirColumns(t *testing.T) {
	v := openVault(t, guarded, `CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
		`CREATE TABLE item (tenant uuid, name text COLLATE loose, size smallint, note text,
			code varchar(9) DEFAULT '', PRIMARY KEY (tenant, name))`)
	v.protect(schema.Protection{Table: "item", Key: "{tenant}/i {name}:{size}%s"})
	const id = "6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b"
	insert := func(name string) string {
		return fmt.Sprintf(`INSERT INTO item VALUES ('%s', '%s', -5)`, strings.ToUpper(id), name)
	}
	l := v.lock(id + "/i Ä :-5%s")
	v.refused("another text", v.in([]*rowlock.Lock{l}, insert("Ä")))
	v.passes("the same", v.in([]*rowlock.Lock{l}, insert("Ä ")))
	// To the collation both are one value; to keys they are two.
	v.refused("a text that only its collation takes for the same", v.in([]*rowlock.Lock{l},
		`UPDATE item SET name = CASE WHEN name = 'Ä ' COLLATE "C" THEN 'ä ' ELSE name END`))
	v.refused("a row without a key", v.in([]*rowlock.Lock{l}, `UPDATE item SET size = NULL`))
}

func TestCascadesAreRefusedToo(t *testing.T) {
	for name, create := range map[string]string{
		"table": `CREATE TABLE account (id bigint PRIMARY KEY, owner bigint REFERENCES person ON DELETE CASCADE ON UPDATE CASCADE)`,
		"partitioned": `CREATE TABLE account (id bigint PRIMARY KEY, owner bigint REFERENCES person ON DELETE CASCADE ON UPDATE CASCADE)
			PARTITION BY RANGE (id); CREATE TABLE account_low PARTITION OF account FOR VALUES FROM (0) TO (100)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := openVault(t, `CREATE TABLE person (id bigint PRIMARY KEY)`, create, `INSERT INTO person VALUES (1), (2)`)
			exec(v, v.db, `UPDATE account SET owner = 1 WHERE id < 3`)
			v.protect(accounts())
			l := v.lock("account/1")
			for _, change := range []string{`DELETE FROM person WHERE id = 1`, `UPDATE person SET id = 5 WHERE id = 1`, `TRUNCATE person CASCADE`} {
				v.refused(change, v.in(nil, change))
				v.refused(change, v.in([]*rowlock.Lock{l}, change))
			}
			v.passes("none", v.in(nil, `DELETE FROM person WHERE id = 2`))
			v.passes("all", v.in([]*rowlock.Lock{l, v.lock("account/2")}, `DELETE FROM person WHERE id = 1`))
		})
	}
}

func TestCOPYIsRefused(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		l := v.lock("account/7")
		const program = `COPY account FROM PROGRAM 'printf ''7\t0\n'''`
		v.refused("COPY", v.in(nil, program))
		v.passes("COPY", v.in([]*rowlock.Lock{l}, program))
	})
}

func TestPartitionsAreProtected(t *testing.T) {
	v := openVault(t, partitioned)
	v.protect(accounts())
	l := v.lock("account/1")
	v.refused("an old partition", v.in(nil, `UPDATE account_low SET balance = 1`))
	v.passes("an old partition", v.in([]*rowlock.Lock{l}, `UPDATE account_low SET balance = 1 WHERE id = 1`))
	exec(t, v.db, `CREATE TABLE account_high (id bigint PRIMARY KEY, balance bigint NOT NULL DEFAULT 0)`)
	exec(t, v.db, `INSERT INTO account_high VALUES (101)`)
	exec(t, v.db, `ALTER TABLE account ATTACH PARTITION account_high FOR VALUES FROM (100) TO (200)`)
	v.refused("an attached partition", v.in(nil, `UPDATE account_high SET balance = 1`))
	v.refused("to another partition", v.in([]*rowlock.Lock{l}, `UPDATE account SET id = 102 WHERE id = 1`))
	exec(t, v.db, `CREATE TABLE account_top PARTITION OF account DEFAULT`)
	v.refused("a new partition", v.in(nil, `INSERT INTO account VALUES (999)`))
	v.passes("which docs/protect.md says", v.in(nil, `TRUNCATE account_low`))
	err := schema.Protect(t.Context(), v.db, v.server.dialect(), schema.Protection{Table: "account_low", Key: "k"})
	if !errors.Is(err, rowlock.ErrTable) {
		t.Errorf("a partition: %v, want ErrTable", err)
	}
}

// Each part of what is made is needed: without it a test above would fail.
func TestEachPartOfAProtectionIsNeeded(t *testing.T) {
	const committed = `UPDATE rowlock SET token = token WHERE key = 'account/1'`
	for _, c := range []struct{ name, from, to, before, write string }{
		{"the transaction", `r.xmin = pg_current_xact_id()::xid`, `true`, "", writes["UPDATE"]},
		{"the state of what lies ahead", `= 'in progress'`, `IS NOT NULL`, committed, writes["UPDATE"]},
		{"what is inserted", `TG_OP = 'INSERT' THEN`, `TG_OP = 'INSERT' THEN RETURN NULL;`, "", `INSERT INTO account VALUES (7)`},
		{"the old row", ` UNION `, ` WHERE false UNION `, "", `UPDATE account SET id = 9 WHERE id = 1`},
		{"the refusal", `IF FOUND THEN`, `IF false THEN`, "", writes["DELETE"]},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := openVault(t, guarded)
			v.protect(accounts())
			l := v.lock("account/9")
			run := func() error {
				tx, err := v.db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				v.passes("a number", must(tx.ExecContext(t.Context(), `SELECT txid_current()`)))
				v.lock("account/1").Unlock(t.Context()) // its row is there
				if c.before != "" {
					exec(t, v.db, c.before)
				}
				v.passes("fence", l.Fence(t.Context(), tx))
				return must(tx.ExecContext(t.Context(), c.write))
			}
			v.refused("whole", run())
			text := one[string](t, v.db, `SELECT pg_get_functiondef(tgfoid) FROM pg_trigger WHERE tgname = 'rowlock_protect_update'
				AND tgrelid = 'account'::regclass`)
			broken := strings.Replace(text, c.from, c.to, -1)
			if broken == text {
				t.Fatalf("%q is not in %s", c.from, text)
			}
			exec(t, v.db, broken)
			if err := run(); unfenced(err) {
				t.Errorf("without it: %v, which no test would notice", err)
			}
		})
	}
}

// What is then written to the parent would fire no trigger of the table.
func TestAProtectedTableBecomesNoPartition(t *testing.T) {
	v := openVault(t, guarded, `CREATE TABLE parent (id bigint NOT NULL, balance bigint NOT NULL)`,
		`CREATE TABLE whole (id bigint NOT NULL, balance bigint NOT NULL) PARTITION BY RANGE (id)`)
	v.protect(accounts())
	for _, change := range []string{
		`ALTER TABLE account INHERIT parent`,
		`ALTER TABLE whole ATTACH PARTITION account FOR VALUES FROM (0) TO (100)`,
	} {
		if err := v.in(nil, change); err == nil || !strings.Contains(err.Error(), "rowlock_protect_alone") {
			t.Errorf("%s: %v, want a refusal because of the trigger", change, err)
		}
	}
	l := v.lock("account/1")
	v.passes("fenced", v.in([]*rowlock.Lock{l}, writes["DELETE"]))
	exec(t, v.db, `CREATE TABLE later () INHERITS (account)`)
	v.refused("to rows of both", v.in(nil, `INSERT INTO later VALUES (8)`, `UPDATE account SET balance = 1 WHERE id = 8`))
	v.passes("which docs/protect.md says", v.in(nil, `INSERT INTO later VALUES (8)`))
}

// Nothing keeps a partitioned table from it, as a trigger of rows with the rows' tables does above:
// the server takes none there. So its triggers must not be of statements, which what is written to
// its new parent would not fire.
func TestAProtectedPartitionedTableStaysSoAsAPartition(t *testing.T) {
	v := openVault(t, partitioned, `CREATE TABLE whole (id bigint NOT NULL, balance bigint NOT NULL) PARTITION BY RANGE (id)`)
	v.protect(accounts())
	exec(t, v.db, `ALTER TABLE whole ATTACH PARTITION account FOR VALUES FROM (0) TO (100)`)
	l := v.lock("account/1")
	for _, table := range []string{"whole", "account", "account_low"} {
		write := `UPDATE ` + table + ` SET balance = balance + 1 WHERE id = 1`
		v.refused(table, v.in(nil, write))
		v.passes(table, v.in([]*rowlock.Lock{l}, write))
	}
}

// What docs/protect.md says is not covered.
func TestWhatIsNotCovered(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		v.passes("a replica's session", v.in(nil, `SET LOCAL session_replication_role = replica`, writes["UPDATE"]))
		v.passes("who may write to the row of the lock", v.in(nil, `INSERT INTO rowlock (key, token, acquired_at, expires_at)
			VALUES ('account/1', 1, now(), now())`, writes["UPDATE"]))
		v.passes("the table's owner", v.in(nil, `ALTER TABLE account DISABLE TRIGGER USER`, writes["UPDATE"]))
	})
}

func TestARoleIsExemptIfItHasLoggedIn(t *testing.T) {
	onBoth(t, func(v vault) {
		user := one[string](v, v.db, `SELECT session_user`)
		p := accounts()
		p.Exempt = []string{user}
		v.protect(p)
		for _, write := range []string{writes["INSERT"], writes["UPDATE"], writes["DELETE"], `TRUNCATE account`} {
			v.passes(write, v.in(nil, write))
		}
		role := freshName()
		exec(v, v.db, `CREATE ROLE `+role)
		v.Cleanup(func() { exec(v, v.db, `DROP OWNED BY `+role); exec(v, v.db, `DROP ROLE `+role) })
		exec(v, v.db, `GRANT USAGE ON SCHEMA `+one[string](v, v.db, `SELECT current_schema()`)+` TO `+role)
		exec(v, v.db, `GRANT ALL ON account TO `+role)
		p.Exempt = []string{role}
		v.protect(p)
		v.refused("another role", v.in(nil, `INSERT INTO account VALUES (8)`))
		v.refused("SET ROLE", v.in(nil, `SET LOCAL ROLE `+role, `INSERT INTO account VALUES (8)`))
		v.passes("the role", v.in(nil, `SET LOCAL SESSION AUTHORIZATION `+role, `INSERT INTO account VALUES (8)`))
	})
}

// Who writes needs no right on rowlock's tables, or on the functions.
func TestWritersNeedNoOtherRights(t *testing.T) {
	v := openVault(t, guarded)
	v.protect(accounts())
	role, place := freshName(), one[string](t, v.db, `SELECT current_schema()`)
	exec(t, v.db, `CREATE ROLE `+role)
	t.Cleanup(func() { exec(t, v.db, `DROP OWNED BY `+role); exec(t, v.db, `DROP ROLE `+role) })
	exec(t, v.db, `GRANT USAGE ON SCHEMA `+place+` TO `+role)
	exec(t, v.db, `GRANT ALL ON account TO `+role)
	l := v.lock("account/1")
	v.refused("forgotten", v.in(nil, `SET LOCAL ROLE `+role, writes["UPDATE"]))
	v.passes("fenced", v.in([]*rowlock.Lock{l}, `SET LOCAL ROLE `+role, writes["UPDATE"]))
	// What a name means is not the caller's to say.
	v.refused("a table of the caller's own", v.in(nil, `CREATE TEMP TABLE rowlock AS SELECT 'account/1'::bytea AS key`,
		`SET LOCAL search_path = pg_temp, `+place, writes["UPDATE"]))
}

func TestWarnOnlyCountsAndRefusesNothing(t *testing.T) {
	onBoth(t, func(v vault) {
		p := accounts()
		p.WarnOnly = true
		v.protect(p)
		v.passes("fenced", v.in([]*rowlock.Lock{v.lock("account/1")}, writes["UPDATE"]))
		for range 3 {
			v.passes("forgotten", v.in(nil, `SET LOCAL application_name = 'payroll'`, writes["UPDATE"]))
		}
		v.passes("repeatable read", v.in(nil, `SET TRANSACTION ISOLATION LEVEL SERIALIZABLE`, writes["UPDATE"]))
		got := v.protected()
		if len(got) != 1 || got[0].Unfenced != 4 || len(got[0].Writers) != 2 || got[0].Writers[0].Application != "payroll" ||
			got[0].Writers[0].Key != "account/1" || got[0].Writers[0].Seen != 3 || got[0].Writers[0].Query != writes["UPDATE"] {
			v.Errorf("got %+v", got)
		}
		v.protect(accounts())
		v.refused("in earnest", v.in(nil, writes["UPDATE"]))
		if got := v.protected(); len(got) != 1 || got[0].Unfenced != 0 || got[0].WarnOnly {
			v.Errorf("in earnest: %+v", got)
		}
	})
}

func (v vault) protected() []schema.ProtectedTable {
	v.Helper()
	all, err := schema.Protected(v.Context(), v.db, v.server.dialect())
	if err != nil {
		v.Fatal(err)
	}
	return all
}

func TestProtectedTellsWhatIsSo(t *testing.T) {
	onBoth(t, func(v vault) {
		if got := v.protected(); len(got) != 0 {
			v.Errorf("before: %+v", got)
		}
		v.protect(accounts())
		place := one[string](v, v.db, `SELECT current_schema()`)
		if got := v.protected(); len(got) != 1 || got[0].Table != place+".account" || got[0].Key != "account/{id}" || len(got[0].Missing) != 0 {
			v.Errorf("got %+v", got)
		}
		exec(v, v.db, `ALTER TABLE account DISABLE TRIGGER rowlock_protect_update`)
		exec(v, v.db, `DROP TRIGGER rowlock_protect_truncate ON account`)
		if got := v.protected(); len(got) != 1 || !slices.Equal(got[0].Missing, []string{"update", "truncate"}) {
			v.Errorf("got %+v", got)
		}
		v.protect(accounts())
		if got := v.protected(); len(got) != 1 || len(got[0].Missing) != 0 {
			v.Errorf("mended: %+v", got)
		}
	})
}

func TestUnprotectLeavesNothing(t *testing.T) {
	onBoth(t, func(v vault) {
		d := v.server.dialect()
		p := accounts()
		p.WarnOnly = true
		v.protect(p)
		exec(v, v.db, `ALTER TABLE account RENAME TO accounts`)
		if err := schema.Unprotect(v.Context(), v.db, d, "accounts"); err != nil {
			v.Fatal(err)
		}
		exec(v, v.db, `UPDATE accounts SET balance = 1`)
		place := one[string](v, v.db, `SELECT current_schema()`)
		if n := one[int](v, v.db, `SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace($1)`, place); n != 0 {
			v.Errorf("%d functions are left", n)
		}
		equal(v, "tables", slices.DeleteFunc(v.server.listTables(v, v.db, ""), func(n string) bool {
			return strings.HasPrefix(n, "account")
		}), ourTables)
		if err := schema.Unprotect(v.Context(), v.db, d, "accounts"); !errors.Is(err, rowlock.ErrTable) {
			v.Errorf("what is not protected: %v, want ErrTable", err)
		}
	})
}

func TestProtectSQLIsWhatProtectDoes(t *testing.T) {
	onBoth(t, func(v vault) {
		up, down, err := schema.ProtectSQL(v.server.dialect(), accounts())
		if err != nil {
			v.Fatal(err)
		}
		exec(v, v.db, up)
		v.refused("protected", v.in(nil, writes["UPDATE"]))
		v.passes("protected", v.in([]*rowlock.Lock{v.lock("account/1")}, writes["UPDATE"]))
		exec(v, v.db, down)
		v.passes("not protected", v.in(nil, writes["UPDATE"]))
	})
}

func TestWhatCannotBeProtectedIsRefused(t *testing.T) {
	v := openVault(t, guarded, `CREATE VIEW seen_account AS SELECT * FROM account`, `CREATE MATERIALIZED VIEW old_account AS SELECT * FROM account`,
		`CREATE TABLE child () INHERITS (account)`, `CREATE TABLE odd (id numeric, at date, c char(3), n int)`,
		`CREATE FOREIGN DATA WRAPPER w`, `CREATE SERVER s FOREIGN DATA WRAPPER w`, `CREATE FOREIGN TABLE far (id int) SERVER s`,
		`CREATE SEQUENCE numbers`)
	t.Cleanup(func() { exec(t, v.db, `DROP FOREIGN DATA WRAPPER w CASCADE`) })
	for _, c := range []struct {
		p    schema.Protection
		says string
		is   error
	}{
		{schema.Protection{Table: "seen_account", Key: "k"}, "view", rowlock.ErrTable},
		{schema.Protection{Table: "old_account", Key: "k"}, "view", rowlock.ErrTable},
		{schema.Protection{Table: "far", Key: "k"}, "foreign", rowlock.ErrTable},
		{schema.Protection{Table: "numbers", Key: "k"}, "no table", rowlock.ErrTable},
		{schema.Protection{Table: "nowhere", Key: "k"}, "no such table", rowlock.ErrTable},
		{schema.Protection{Table: "nowhere.account", Key: "k"}, "no such table", rowlock.ErrTable},
		{schema.Protection{Table: "account", Key: "k"}, "inherits", rowlock.ErrTable},
		{schema.Protection{Table: "child", Key: "k"}, "inherits", rowlock.ErrTable},
		{schema.Protection{Table: "rowlock", Key: "k"}, "has the locks", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: "k/{ID}"}, "no column ID", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: "k/{n}/{id}"}, "numeric", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: "k/{at}"}, "date", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: "k/{c}"}, "character(3)", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: "k", Exempt: []string{"nobody_here"}}, "no role", rowlock.ErrTable},
		{schema.Protection{Table: "odd", Key: ""}, "empty", rowlock.ErrInvalidKey},
		{schema.Protection{Table: "odd", Key: "k/{n"}, "{column}", rowlock.ErrConfig},
		{schema.Protection{Table: "odd", Key: "it's {n}"}, "quote", rowlock.ErrConfig},
		{schema.Protection{Table: "odd", Key: "$check$ {n}"}, "quote", rowlock.ErrConfig},
		{schema.Protection{Table: "odd", Key: `k/{n"}`}, "quote", rowlock.ErrConfig},
		{schema.Protection{Table: "odd", Key: "k/{n)}"}, "n)", rowlock.ErrConfig},
		{schema.Protection{Table: "a.b.c", Key: "k"}, "a.b.c", rowlock.ErrConfig},
	} {
		err := schema.Protect(t.Context(), v.db, v.server.dialect(), c.p)
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%+v: %v, want %v that says %q", c.p, err, c.is, c.says)
		}
	}
	if n := one[int](t, v.db, `SELECT count(*) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = tgrelid
		WHERE tgname LIKE 'rowlock%' AND c.relnamespace = to_regnamespace(current_schema())`); n != 0 {
		t.Errorf("%d triggers were made", n)
	}
}

func TestProtectSaysWhichRightIsMissing(t *testing.T) {
	v := openVault(t, guarded)
	role, place := freshName(), one[string](t, v.db, `SELECT current_schema()`)
	exec(t, v.db, `CREATE ROLE `+role)
	t.Cleanup(func() { exec(t, v.db, `DROP OWNED BY `+role); exec(t, v.db, `DROP ROLE `+role) })
	exec(t, v.db, `GRANT USAGE ON SCHEMA `+place+` TO `+role)
	exec(t, v.db, `GRANT SELECT, UPDATE ON account TO `+role)
	exec(t, v.db, `GRANT SELECT ON rowlock_meta TO `+role)
	db := v.as(role)
	for _, step := range []struct{ says, grant string }{
		{"triggers", `GRANT TRIGGER ON account TO `},
		{"function", `GRANT CREATE ON SCHEMA ` + place + ` TO `},
		{"read", `GRANT SELECT ON rowlock TO `},
	} {
		err := schema.Protect(t.Context(), db, v.server.dialect(), accounts())
		if !errors.Is(err, rowlock.ErrPrivilege) || !strings.Contains(fmt.Sprint(err), step.says) {
			t.Errorf("before %s: %v", step.grant, err)
		}
		exec(t, v.db, step.grant+role)
	}
	v.passes("with all rights", schema.Protect(t.Context(), db, v.server.dialect(), accounts()))
	v.refused("protected", v.in(nil, writes["UPDATE"]))
	exec(t, v.db, `DROP TRIGGER rowlock_protect_insert ON account; DROP TRIGGER rowlock_protect_update ON account;
		DROP TRIGGER rowlock_protect_delete ON account; DROP TRIGGER rowlock_protect_alone ON account; DROP TRIGGER rowlock_protect_truncate ON account`)
}

// as returns sessions of another role.
func (v vault) as(role string) *sql.DB {
	v.Helper()
	exec(v, v.db, `ALTER ROLE `+role+` LOGIN`)
	u, err := url.Parse(v.dsn)
	if err != nil {
		v.Fatal(err)
	}
	u.User = url.User(role)
	return open(v, "pgx", u.String())
}

// Without the tables of locks nothing could be written to a protected table.
func TestTheTablesStayWhileATableIsProtected(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(accounts())
		v.locks.Close()
		for _, remove := range []func(context.Context, schema.DB, dialect.Dialect) error{schema.Down, schema.Uninstall} {
			err := remove(v.Context(), v.db, v.server.dialect())
			if !errors.Is(err, rowlock.ErrHeld) || !strings.Contains(fmt.Sprint(err), "account") {
				v.Errorf("got %v, want ErrHeld that names the table", err)
			}
		}
		_, down, err := schema.SQL(v.server.dialect())
		if err != nil {
			v.Fatal(err)
		}
		exec(v, v.db, down)
		if err := schema.Unprotect(v.Context(), v.db, v.server.dialect(), "account"); err != nil {
			v.Fatal(err)
		}
		v.passes("Uninstall", schema.Uninstall(v.Context(), v.db, v.server.dialect()))
	})
}

func TestSQLiteProtectsNothing(t *testing.T) {
	for _, s := range []server{onSQLite} {
		db, d := new(sql.DB), s.dialect()
		_, _, err := schema.ProtectSQL(d, accounts())
		_, listed := schema.Protected(t.Context(), db, d)
		for what, err := range map[string]error{
			"Protect": schema.Protect(t.Context(), db, d, accounts()), "ProtectSQL": err,
			"Unprotect": schema.Unprotect(t.Context(), db, d, "account"), "Protected": listed,
		} {
			if !errors.Is(err, rowlock.ErrUnsupported) {
				t.Errorf("%s on %s: %v, want ErrUnsupported", what, s.name, err)
			}
		}
	}
}
