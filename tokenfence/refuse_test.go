package tokenfence_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/tokenfence"
)

func TestNewRefusesWhatNamesNoTable(t *testing.T) {
	s := &site{T: t}
	good := tokenfence.Rows{Table: "main.report", Key: "id", Token: "token"}
	if _, err := tokenfence.New(sqlite.New(), good); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*tokenfence.Rows)
		says   string
	}{
		{func(r *tokenfence.Rows) { r.Table = "" }, `Rows.Table is ""`},
		{func(r *tokenfence.Rows) { r.Table = `a"b` }, `Rows.Table is "a\"b"`},
		{func(r *tokenfence.Rows) { r.Table = "a.b.c" }, `Rows.Table is "a.b.c"`},
		{func(r *tokenfence.Rows) { r.Key = "report.id" }, `Rows.Key is "report.id"`},
		{func(r *tokenfence.Rows) { r.Token = "token; DROP TABLE x" }, "Rows.Token"},
		{func(r *tokenfence.Rows) { r.Token = "ID" }, "two columns"},
	} {
		at := good
		c.change(&at)
		f, err := tokenfence.New(sqlite.New(), at)
		s.wantIs(err, lease.ErrConfig, c.says)
		if f != nil {
			t.Errorf("%+v: got a fence", at)
		}
	}
	for _, none := range []dialect.Dialect{nil, (*nothing)(nil)} {
		_, err := tokenfence.New(none, good)
		s.wantIs(err, lease.ErrConfig, "dialect")
	}
}

// nothing is a dialect that is a nil pointer.
type nothing struct{ dialect.Dialect }

func TestPassRefusesBeforeItSends(t *testing.T) {
	s := alone(t, testdb.Kinds[0].Open(t), "lock_token")
	tx := s.begin()
	var none *string
	for _, c := range []struct {
		tx    lease.Tx
		key   any
		token lease.Token
		says  string
	}{
		{nil, "q3", 7, "begin one"},
		{(*sql.Tx)(nil), "q3", 7, "begin one"},
		{s.env.DB, "q3", 7, "pool"},
		{tx, nil, 7, "key is nil"},
		{tx, none, 7, "key is nil"},
		{tx, "q3", 0, "0 is no token"},
		{tx, "q3", -1, "-1 is no token"},
		{tx, "q3", lease.MaxToken, "is no token"},
	} {
		s.wantIs(s.fence.Pass(t.Context(), c.tx, c.key, c.token), lease.ErrConfig, c.says)
	}
	s.wantIs(s.fence.PassIn(t.Context(), nil, "q3", 7), lease.ErrConfig, "begin one")
	var noContext context.Context
	s.wantIs(s.fence.Pass(noContext, tx, "q3", 7), lease.ErrConfig, "ctx is nil")
	s.ok(tx.Commit())
	var rows int
	s.ok(s.env.DB.QueryRow(`SELECT COUNT(*) FROM ` + s.at.Table).Scan(&rows))
	if rows != 0 {
		t.Errorf("%d rows were written", rows)
	}
}

func TestATableThatIsNotAsDescribed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, "odd", tokenfence.Rows{Key: "id", Token: "token"},
			`id VARCHAR(50), token BIGINT`)
		e.Exec(t, `INSERT INTO `+s.at.Table+` (id, token)
			VALUES ('null', NULL), ('twice', 1), ('twice', 2)`)
		s.wantIs(s.passKey("null", 7), lease.ErrTable, "is NULL", "NOT NULL")
		s.wantIs(s.passKey("twice", 7), lease.ErrTable, "2 rows", `"twice"`)
		for _, at := range []tokenfence.Rows{
			{Table: s.at.Table + "_gone", Key: "id", Token: "token"},
			{Table: s.at.Table, Key: "name", Token: "token"},
			{Table: s.at.Table, Key: "id", Token: "tokens"},
			{Table: s.at.Table, Key: "name", Token: "token", Create: true},
		} {
			var err error
			s.fence, err = tokenfence.New(e.Dialect, at)
			s.ok(err)
			s.wantIs(s.passKey("null", 7), lease.ErrTable)
		}
	})
}

// MySQL takes a key that is not unique for a new one, each time.
func TestAKeyThatIsNotUniqueDoesNotPassTwice(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, "many", tokenfence.Rows{Key: "name", Token: "token", Create: true},
			`name VARCHAR(50), token BIGINT`)
		if first := s.pass(9); first == nil && e.Driver != "mysql" {
			t.Error("there is nothing to tell that a key has a row")
		}
		if err := s.pass(8); err == nil {
			t.Error("8 has passed after 9")
		}
		if e.Driver == "mysql" {
			s.wantIs(s.pass(10), lease.ErrTable, "2 rows", "unique")
		}
	})
}

// With a lax sql_mode a token that does not fit becomes the largest that does, and every later one
// would be equal to it.
func TestATokenThatDoesNotFitItsColumnDoesNotPass(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("a value that does not fit is an error, or fits")
		}
		for _, create := range []bool{false, true} {
			s := newSite(t, e, "narrow"+map[bool]string{true: "er"}[create],
				tokenfence.Rows{Key: "id", Token: "token", Create: create},
				`id VARCHAR(50) PRIMARY KEY, token INT NOT NULL`)
			s.usePool("sql_mode=%27%27")
			e.Exec(t, `INSERT INTO `+s.at.Table+` (id, token) VALUES ('q3', 0)`)
			s.ok(s.pass(1<<31 - 1))
			s.wantIs(s.pass(1<<40), lease.ErrTable, "BIGINT")
		}
	})
}

// columns are types that a column of tokens may have, by database. Those with "!" compare tokens
// exactly. The database itself refuses a token for those with "?".
var columns = map[string][]string{
	"sqlite": {
		"!INTEGER", "!BIGINT", "!INT8", "!", "!NUMERIC", "!DECIMAL(20,0)",
		"REAL", "DOUBLE", "FLOAT", "TEXT", "VARCHAR(30)", "CHAR(30)", "CLOB",
	},
	"postgres": {
		"!bigint", "!rowlock_token_domain", "double precision", "real", "numeric", "numeric(20,0)",
		"numeric(30,-3)", "text", "varchar(30)", "char(30)", "money", "jsonb", "date",
	},
	"mysql": {
		"!BIGINT", "!BIGINT UNSIGNED", "!BIGINT(20) ZEROFILL", "!DECIMAL(20,0)", "DECIMAL(30,2)",
		"DOUBLE", "FLOAT", "VARCHAR(30)", "CHAR(30)", "VARBINARY(30)", "TEXT", "BLOB", "?JSON",
		"?ENUM('0','9','10')", "?SET('0','9','10')",
	},
}

// pairs are tokens of which the second is older. A float takes both for one number, or a text has
// the second above the first.
var pairs = [][2]lease.Token{{10, 9}, {1<<53 + 1, 1 << 53}, {103332148302868482, 103332148302868481}}

func TestAnOlderTokenPassesInNoTypeOfColumn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver == "pgx" {
			e.Exec(t, `CREATE DOMAIN rowlock_token_domain AS bigint`)
			t.Cleanup(func() { e.Exec(t, `DROP DOMAIN rowlock_token_domain`) })
		}
		for _, typ := range columns[string(e.Dialect.Name())] {
			if typ == "numeric(30,-3)" && e.Before(t, 15) {
				continue
			}
			for _, create := range []bool{false, true} {
				t.Run(fmt.Sprint(typ, create), func(t *testing.T) {
					at := tokenfence.Rows{Key: "name", Token: "token", Create: create}
					s := newSite(t, e, "typed", at, `name VARCHAR(50) PRIMARY KEY, token `+strings.Trim(typ, "!?"))
					for _, p := range pairs {
						s.tryPair(p, create, typ)
					}
				})
			}
		}
	})
}

func (s *site) tryPair(p [2]lease.Token, create bool, typ string) {
	s.Helper()
	if !create {
		s.env.Exec(s.T, `DELETE FROM `+s.at.Table)
		if _, err := s.env.DB.Exec(`INSERT INTO ` + s.at.Table + ` (name, token) VALUES ('q3', 0)`); err != nil {
			s.Skip("no column of this type has a number: ", err)
		}
	}
	newer, older := s.pass(p[0]), s.pass(p[1])
	switch {
	case strings.HasPrefix(typ, "!"):
		s.ok(newer)
		s.wantIs(older, lease.ErrFenced)
	case newer == nil || older == nil:
		s.Errorf("%d has passed: %v; %d: %v", p[0], newer, p[1], older)
	case !strings.HasPrefix(typ, "?"):
		s.wantIs(newer, lease.ErrTable, "BIGINT")
		s.wantIs(older, lease.ErrTable, "BIGINT")
	}
}
