// Package shown reads what the console and the program show from rowlock's tables, a statement for
// each page.
package shown

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var files embed.FS

// Tables are one set of tables, or the part of it whose keys begin with a space.
type Tables struct {
	db      adapter.Pool
	dialect *sqlstore.Dialect
	space   string

	locating   sync.Mutex
	statements map[string]string // nil until the tables are known, with those of readers
}

// Of returns the tables of a dialect whose names were checked. space is what stands before the keys
// of a namespace, or "".
func Of(db adapter.Pool, d *sqlstore.Dialect, space string) *Tables {
	return &Tables{db: db, dialect: d, space: space}
}

// texts returns the statements. The first page asks the database where the tables are: a console
// can be made before its database answers. Each page asks whether readers can share keys, until
// they can.
func (t *Tables) texts(ctx context.Context) (map[string]string, error) {
	t.locating.Lock()
	defer t.locating.Unlock()
	if t.statements != nil {
		return t.statements, nil
	}
	d, err := t.dialect.Located(ctx, t.db)
	if err != nil {
		return nil, err
	}
	pinned, err := t.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer pinned.Close()
	sets, err := sqlstore.SetsOf(ctx, pinned, d)
	if err != nil {
		return nil, err
	}
	texts := statements(d, sets)
	if sets.Need(sqlstore.Shared) == nil {
		t.statements = texts
	}
	return texts, nil
}

// noMembers stands for the table of members where there is none.
const noMembers = "(SELECT @key, owner AS reader_group, owner, note, acquired_at AS joined_at, expires_at " +
	"FROM rowlock WHERE 1 = 0) AS m"

func statements(d *sqlstore.Dialect, sets sqlstore.Sets) map[string]string {
	text, err := files.ReadFile(d.Name() + ".sql")
	if err != nil {
		panic(err)
	}
	limit := func(sql string) string { return sql }
	if d.Name() == "mysql" {
		limit = bound
	}
	all := make(map[string]string)
	sections := sqlstore.CutSections(string(text))
	if sets.Need(sqlstore.Shared) != nil {
		key, _ := d.Quote("key")
		for i := range sections {
			sections[i].SQL = strings.ReplaceAll(sections[i].SQL, "rowlock_member AS m",
				strings.Replace(noMembers, "@key", key, 1))
		}
	}
	held := ""
	for _, s := range sections {
		switch s.Name {
		case "held":
			held = s.SQL
		case "by-age":
			s.Name, s.SQL = "by-expiry", strings.ReplaceAll(s.SQL, "acquired_at", "expires_at")
			sections = append(sections, s)
		}
	}
	for _, s := range sections {
		if strings.HasPrefix(s.Name, "by-") {
			s.SQL = strings.Replace(held, "@page", s.SQL, 1)
		}
		all[s.Name] = limit(sqlstore.LabelSection("console-"+s.Name, d.Fill(s.SQL)))
	}
	return all
}

// query reads all rows of a statement. A key of the result is the space's own.
func query[T any](
	ctx context.Context, t *Tables, name string, args []any, scan func(*sql.Rows) (T, error),
) (all []T, err error) {
	texts, err := t.texts(ctx)
	if err != nil {
		return nil, t.explain(name, err)
	}
	pinned, err := t.db.Conn(ctx)
	if err != nil {
		return nil, t.explain(name, err)
	}
	defer func() { _ = pinned.Close() }()
	rows, err := pinned.QueryContext(ctx, texts[name], args...)
	if err != nil {
		return nil, t.explain(name, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		one, err := scan(rows)
		if conn.IsBad(err) {
			continue // of one row alone: a wait that says nothing leads nowhere
		}
		if err != nil {
			return nil, t.explain(name, err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, t.explain(name, err)
	}
	return all, nil
}

// ErrRefused is of a statement that the database has answered, and would refuse again.
var ErrRefused = errors.New("rowlock: the database refuses")

// explain turns a database's error into one of rowlock's.
func (t *Tables) explain(name string, err error) error {
	switch v := sqlstore.Judge(t.dialect, err); {
	case v.As != nil:
		return fmt.Errorf("%w: read %s: %w", v.As, name, err)
	case v.Class == sqlstore.Refused:
		return fmt.Errorf("%w: read %s: %w", ErrRefused, name, err)
	}
	return fmt.Errorf("rowlock: read %s: %w", name, err)
}

func micros(n int64) time.Duration { return conn.Duration(n) }

func (t *Tables) own(key []byte) string { return strings.TrimPrefix(string(key), t.space) }

// bounds returns a text below all keys of the space with a prefix and the largest of them.
func (t *Tables) bounds(prefix string) (above, last []byte) {
	after, to := lease.Range(t.space + prefix)
	return []byte(after), []byte(to)
}

// Patience bounds a statement. The caller's context does too.
const Patience = 5 * time.Second

// bound has MySQL and MariaDB end a statement after Patience: both go on with one whose connection
// was closed, which is how an ended context reaches them. PostgreSQL and SQLite are told. The
// session is the application's, and keeps settings that would cut the page short or stop its clock:
// they are made for the statement. A timestamp of 0 is the clock's.
//
// MySQL reads a hint right after the verb, before any other comment. MariaDB executes what is
// inside /*M! … */.
func bound(statement string) string {
	const limits = `/*M! SET STATEMENT max_statement_time = %d, sql_select_limit = 18446744073709551615, ` +
		`timestamp = 0 FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) ` +
		`SET_VAR(sql_select_limit=18446744073709551615) SET_VAR(timestamp=0) */`
	body, found := strings.CutPrefix(statement, "SELECT")
	if !found {
		return statement
	}
	return fmt.Sprintf(limits, int(Patience.Seconds()), Patience.Milliseconds()) + body
}
