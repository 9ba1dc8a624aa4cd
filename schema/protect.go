package schema

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed protect
var protect embed.FS

// Protection says which lock a transaction must have fenced before it writes to a table.
type Protection struct {
	// Table is its name, or its schema, a dot and its name, as the catalog spells them.
	Table string `json:"-"`
	// Key is the key of a row's lock: "account/{id}" has the value of the row's column id. The
	// columns are of integers, text or UUIDs, and their text is that of the database: decimal
	// digits, lower case for a UUID, and UTF-8. Without a column it is the one key of the whole
	// table. A * at its end stands for any text: "account/*" is for a table that is written under
	// the lock of some account, which its rows do not name. It is the key as the listing of all
	// locks shows it, with the names of its namespaces.
	Key string `json:"key"`
	// Exempt are roles or users that write without a fence, for migrations: those that have logged
	// in. SET ROLE changes nothing. On MySQL and MariaDB a user is named without a host.
	Exempt []string `json:"exempt,omitempty"`
	// WarnOnly refuses nothing. It counts statements without a fence, and who sent them: see
	// [Protected].
	WarnOnly bool `json:"warn_only,omitempty"`
}

// Protect has the database refuse each INSERT, UPDATE, DELETE and TRUNCATE of a table in a
// transaction that has not fenced the row's key: by rowlock's Fence, DoTx or UnlockTx of a lock
// that is not shared. A row whose key changes needs both fences. The refusal is an error of the
// statement, SQLSTATE P0RLF, which DoTx returns as lease.ErrFenced. A table that is protected
// already is protected as p says from now on.
//
// On PostgreSQL that is sound. On MySQL and MariaDB, whose TRUNCATE fires no trigger, it is sound
// through DoTx, and with UnlockTx, after which nothing can be written; after a Fence by hand and a
// COMMIT without UnlockTx the session may write until the lock is released. On SQLite it is
// lease.ErrUnsupported.
//
// It refuses with lease.ErrTable, before anything is written, a table that cannot be protected, as
// a view or one without the key's columns. On PostgreSQL the user must own the table or have
// TRIGGER on it, and may make functions where the tables of locks are; on MySQL and MariaDB the
// user needs TRIGGER on the table, SELECT on rowlock, and what the binary log asks for. Otherwise
// it is lease.ErrPrivilege. Triggers act as this user, who needs to stay. It waits for writers of
// the table, as Migrate does.
func Protect(ctx context.Context, db DB, d dialect.Dialect, p Protection) error {
	return changeProtection(ctx, "schema.Protect", db, d, p, "protect")
}

// Unprotect has the table written as before. A table that is not protected is lease.ErrTable.
func Unprotect(ctx context.Context, db DB, d dialect.Dialect, table string) error {
	return changeProtection(ctx, "schema.Unprotect", db, d, Protection{Table: table, Key: table}, "unprotect")
}

func changeProtection(
	ctx context.Context, caller string, db DB, d dialect.Dialect, p Protection, section string,
) error {
	if err := protects(d); err != nil {
		return err
	}
	s, err := newSession(ctx, caller, db, d)
	if err != nil {
		return err
	}
	target, err := s.dialect.OwnIn(ctx, db, p.Table)
	if err != nil {
		return err
	}
	if s.dialect.Name() == "mysql" {
		return s.changeTriggers(ctx, db, p, target, section == "protect")
	}
	text, err := p.sql(s.dialect, target, section)
	if err != nil {
		return err
	}
	return s.run(ctx, db, section+" "+p.Table, func(ctx context.Context, conn *sql.Conn) error {
		return s.refused(s.exec(ctx, conn, text))
	})
}

// ProtectSQL is what Protect and Unprotect run, for a migration of the application's: up protects,
// down ends it. Statements have semicolons within them; goose finds their ends. It connects to
// nothing. On PostgreSQL each is one statement, which finds tables without a schema by the
// search_path and refuses what Protect refuses. On MySQL and MariaDB the server refuses views and
// missing columns alone: look at Protected afterwards.
func ProtectSQL(d dialect.Dialect, p Protection) (up, down string, err error) {
	if err := protects(d); err != nil {
		return "", "", err
	}
	of, err := open(d)
	if err != nil {
		return "", "", err
	}
	target, err := of.Quote(p.Table)
	if err != nil {
		return "", "", err
	}
	if of.Name() == "mysql" {
		return p.triggerSQL(of, target)
	}
	for section, to := range map[string]*string{"protect": &up, "unprotect": &down} {
		text, err := p.sql(of, target, section)
		if err != nil {
			return "", "", err
		}
		*to = "-- +goose StatementBegin\n" + text + ";\n-- +goose StatementEnd\n"
	}
	return up, down, nil
}

// protects refuses databases where a trigger could not know what its transaction has fenced.
func protects(d dialect.Dialect) error {
	of, err := open(d)
	if err != nil {
		return err
	}
	if of.Name() == "sqlite" {
		return fmt.Errorf("%w: protect: a trigger of SQLite does not see which transaction has written the lock's "+
			"row, and what a fence could leave for it would be there for the next transaction too: write in DoTx, "+
			"and have rowlockvet look for what does not", lease.ErrUnsupported)
	}
	return nil
}

// protection are the sections of a dialect's file, with names not filled in. Each dialect that
// protects has one.
func protection(of *sqlstore.Dialect) map[string]string {
	file, _ := protect.ReadFile("protect/" + of.Name() + ".sql")
	sections := map[string]string{}
	for _, s := range sqlstore.CutSections(string(file)) {
		sections[s.Name] = s.SQL
	}
	return sections
}

var (
	keyColumn = regexp.MustCompile(`\{([^{}]*)\}`)
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// sql is a section for p, all of whose names have been checked.
func (p Protection) sql(of *sqlstore.Dialect, target, section string) (string, error) {
	texts, columns, err := p.key()
	if err != nil {
		return "", err
	}
	key := "'" + texts[0] + "'"
	for i, text := range texts[1:] {
		key += fmt.Sprintf(" || d.c%d::text || '%s'", i, text)
	}
	key = "convert_to(" + key + ", 'UTF8')"
	definition, err := asText(p)
	if err != nil {
		return "", err
	}
	match, some := "= k.key", ""
	if strings.HasSuffix(p.Key, "*") {
		match, some = "BETWEEN k.key AND k.key || decode(repeat('ff', 255), 'hex')", "*"
	}
	sections := protection(of)
	text := strings.ReplaceAll(sections[section], "@remove", "  "+sections["remove"]+";")
	return strings.NewReplacer(
		"@target", target, "@locks", of.Names().Table("rowlock", `"`), "@prefix", of.Names().Prefix,
		"@columns", literals(columns), "@exempt", literals(p.Exempt), "@key", key,
		"@match", match, "@any", some,
		"@warn", strconv.FormatBool(p.WarnOnly), "@definition", definition,
	).Replace(text), nil
}

// asText is JSON without a quote or a backslash.
func asText(v any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSpace(text.String()), err
}

// key takes the key apart: the columns stand between the texts.
func (p Protection) key() (texts, columns []string, err error) {
	if strings.ContainsAny(p.Key, `'"\$`) || strings.ContainsFunc(p.Key, unprintable) {
		return nil, nil, fmt.Errorf("%w: protect %s: the key %q has a quote, a backslash, a $ or what does not "+
			"print", lease.ErrConfig, p.Table, p.Key)
	}
	if err := lease.CheckKey(keyColumn.ReplaceAllString(p.Key, "0")); err != nil {
		return nil, nil, err
	}
	for _, found := range keyColumn.FindAllStringSubmatch(p.Key, -1) {
		columns = append(columns, found[1])
	}
	texts = keyColumn.Split(strings.TrimSuffix(p.Key, "*"), -1)
	if strings.ContainsAny(strings.Join(texts, ""), "{}") {
		return nil, nil, fmt.Errorf("%w: protect %s: the key %q: write each column as {column}",
			lease.ErrConfig, p.Table, p.Key)
	}
	for _, name := range append(columns, p.Exempt...) {
		if !plainName.MatchString(name) {
			return nil, nil, fmt.Errorf("%w: protect %s: the name %q: use a letter or _, then up to 62 letters, "+
				"digits or _", lease.ErrConfig, p.Table, name)
		}
	}
	return texts, columns, nil
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

func literals(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "'" + strings.Join(names, "', '") + "'"
}

// refused gives a refusal of the statement's its kind. The text says enough.
func (s *session) refused(err error) error {
	v := sqlstore.Judge(s.dialect, err)
	var state interface{ SQLState() string }
	switch {
	case errors.As(err, &state) && state.SQLState() == "P0RLT":
		return fmt.Errorf("%w: %w", lease.ErrTable, err)
	case errors.Is(v.As, lease.ErrPrivilege), errors.Is(v.As, lease.ErrNoSchema):
		return fmt.Errorf("%w: %w", v.As, err)
	}
	return err
}

// ProtectedTable is a table that Protect has protected.
type ProtectedTable struct {
	Protection
	// Missing are the kinds of writes that are not refused any more, because a trigger is disabled or
	// gone: "insert", "update", "delete", and on PostgreSQL "truncate". On MySQL and MariaDB a
	// foreign key that cascades into the table is past the last two.
	Missing []string
	// Unfenced is how many statements WarnOnly has counted, and rows of a partitioned table, of MySQL
	// and of MariaDB. Those of transactions that were rolled back are among them.
	Unfenced int64
	// Writers are who sent them: of the first hundred all, and then of each thousand one.
	Writers []UnfencedWriter
}

// UnfencedWriter is who has written to a table without a fence.
type UnfencedWriter struct {
	// Role has logged in. Application is what it calls itself, and on MySQL and MariaDB its host.
	Role, Application string
	// Key is one of those that it had not fenced, and Query the beginning of a statement, which MySQL
	// and MariaDB do not tell.
	Key, Query string
	// Seen is how many of its statements have a row.
	Seen int64
	Last time.Time
}

// Protected returns the tables that Protect has protected with the tables of locks that d names.
func Protected(ctx context.Context, db DB, d dialect.Dialect) ([]ProtectedTable, error) {
	if err := protects(d); err != nil {
		return nil, err
	}
	s, err := newSession(ctx, "schema.Protected", db, d)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, s.explain(ctx, db, "list protected tables", err)
	}
	defer conn.Close()
	// It has settings of ours, and is no more lent.
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
	var all []ProtectedTable
	if err = s.dialect.Abandon(ctx, conn); err == nil {
		all, err = s.protected(ctx, conn)
	}
	return all, s.explain(ctx, db, "list protected tables", err)
}

// unprotected refuses to take the locks from below protected tables, to which nothing could be
// written then.
func (s *session) unprotected(ctx context.Context, conn *sql.Conn) error {
	if protects(s.dialect) != nil {
		return nil
	}
	all, err := s.protected(ctx, conn)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%w: the tables stay, because %s is protected (and %d more), and could not be written "+
			"to without them: schema.Unprotect it first", lease.ErrHeld, all[0].Table, len(all)-1)
	}
	return err
}

func (s *session) protected(ctx context.Context, conn *sql.Conn) (all []ProtectedTable, err error) {
	if s.dialect.Name() == "mysql" {
		return s.triggered(ctx, conn)
	}
	sections, n := protection(s.dialect), s.dialect.Names()
	rows, err := conn.QueryContext(ctx, sections["protected"], n.Schema, n.Prefix+"rowlock_protect_")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var counts []string
	for rows.Next() {
		var t ProtectedTable
		var definition, fires, seen string
		if err := rows.Scan(&t.Table, &definition, &fires, &seen); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(definition), &t.Protection); err != nil {
			return nil, fmt.Errorf("%w: the comment on what protects %s is %q: protect it again",
				lease.ErrTable, t.Table, definition)
		}
		for _, kind := range []string{"insert", "update", "delete", "truncate"} {
			if !strings.Contains(fires, kind) {
				t.Missing = append(t.Missing, kind)
			}
		}
		all, counts = append(all, t), append(counts, seen)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i, seen := range counts {
		if seen != "" {
			if err := all[i].count(ctx, conn, strings.ReplaceAll(sections["seen"], "@seen", seen)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (t *ProtectedTable) count(ctx context.Context, conn *sql.Conn, query string) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var w UnfencedWriter
		var last int64
		err := rows.Scan(&w.Role, &w.Application, &w.Key, &w.Query, &w.Seen, &last, &t.Unfenced)
		if err != nil {
			return err
		}
		w.Last = time.UnixMicro(last)
		t.Writers = append(t.Writers, w)
	}
	return rows.Err()
}
