package schema

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// own is a table of the user's.
type own struct{ database, table string }

func ownOf(quoted string) own {
	database, table, both := strings.Cut(strings.ReplaceAll(quoted, "`", ""), ".")
	if !both {
		return own{table: database}
	}
	return own{database, table}
}

func (o own) refuse(format string, a ...any) error {
	return fmt.Errorf("%w: cannot protect %s: %s", lease.ErrTable, o.table, fmt.Sprintf(format, a...))
}

// events are what triggers of MySQL and MariaDB are of.
var events = []string{"insert", "update", "delete"}

// trigger is one that Protect has made.
type trigger struct {
	own
	name, event string
	made        made
}

// made is what a trigger has of it.
type made struct {
	Protection
	// Seen is the table of what it counts, with its database.
	Seen string `json:"seen,omitempty"`
}

// making is the name of a trigger and the statement that makes it.
type making struct{ name, text string }

// triggers are those of p, one for each of events in that order, and the table of what they count.
// The names tell what they do, so that new ones can be made before the old ones go.
func (p Protection) triggers(of *sqlstore.Dialect, target string) (
	create []making, seen, counted string, err error,
) {
	texts, columns, err := p.key()
	if err != nil {
		return nil, "", "", err
	}
	sections, n, on := protection(of), of.Names(), ownOf(target)
	told, err := asText(p)
	if err != nil {
		return nil, "", "", err
	}
	sum := sha256.Sum256([]byte(target + told + sections["trigger"] + sections["check"]))
	id := hex.EncodeToString(sum[:6])
	m, refuse := made{Protection: p}, sections["raise"]
	if p.WarnOnly {
		seen = n.Table("rowlock_seen_"+id, "`")
		m.Seen, refuse = seen, sections["count"]
	}
	definition, err := asText(m)
	if err != nil {
		return nil, "", "", err
	}
	match, some := "= @key", ""
	if strings.HasSuffix(p.Key, "*") {
		match, some = "BETWEEN @key AND CONCAT(@key, REPEAT(0xFF, 255))", "*"
	}
	exempt := []string{"''"} // which no user is called
	for _, user := range p.Exempt {
		exempt = append(exempt, inHex(user))
	}
	key := func(row string) string {
		parts := []string{inHex(texts[0])}
		for i, c := range columns {
			parts = append(parts, fmt.Sprintf("CAST(CONVERT(%s.`%s` USING utf8mb4) AS BINARY)", row, c), inHex(texts[i+1]))
		}
		return "LEFT(CONCAT(" + strings.Join(parts, ", ") + "), 1024)"
	}
	check := func(row string) string {
		text := strings.NewReplacer("@match", match, "@refuse", refuse).Replace(sections["check"])
		return strings.ReplaceAll(text, "@key", key(row))
	}
	for _, event := range events {
		checks := check(map[string]string{"insert": "NEW", "update": "OLD", "delete": "OLD"}[event])
		if event == "update" && len(columns) > 0 {
			checks += ";\n" + strings.NewReplacer("@old", key("OLD"), "@new", key("NEW"), "@check", check("NEW")).
				Replace(sections["moved"])
		}
		name := n.Prefix + "rowlock_protect_" + event + "_" + id
		text := strings.ReplaceAll(sections["trigger"], "@checks", checks)
		create = append(create, making{name, strings.NewReplacer(
			"@name", sqlstore.Names{Schema: on.database}.Table(name, "`"), "@event", event, "@target", target,
			"@locks", n.Table("rowlock", "`"), "@any", some, "@table", inHex(on.table),
			"@definition", hex.EncodeToString([]byte(definition)), "@exempt", strings.Join(exempt, ", "), "@seen", seen,
		).Replace(text)})
	}
	return create, seen, strings.ReplaceAll(sections["counted"], "@seen", seen), nil
}

func inHex(text string) string {
	if text == "" {
		return "''"
	}
	return "0x" + hex.EncodeToString([]byte(text))
}

// triggerSQL is ProtectSQL's.
func (p Protection) triggerSQL(of *sqlstore.Dialect, target string) (up, down string, err error) {
	if strings.Contains(target, ".") && of.Names().Schema == "" {
		return "", "", fmt.Errorf("%w: protect %s: a trigger looks for the locks in the database of its table: say with "+
			"dialect.Schema where they are", lease.ErrConfig, p.Table)
	}
	create, seen, counted, err := p.triggers(of, target)
	if err != nil {
		return "", "", err
	}
	n := sqlstore.Names{Schema: ownOf(target).database}
	for _, c := range create {
		up += "-- +goose StatementBegin\n" + c.text + ";\n-- +goose StatementEnd\n"
		down += "DROP TRIGGER IF EXISTS " + n.Table(c.name, "`") + ";\n"
	}
	if seen != "" {
		up, down = counted+";\n"+up, down+"DROP TABLE IF EXISTS "+seen+";\n"
	}
	return up, down, nil
}

// changeTriggers has a table protected by p alone, or no more. Each statement commits by itself:
// what is new is made before what was there is dropped, so that nothing passes meanwhile.
func (s *session) changeTriggers(ctx context.Context, db DB, p Protection, target string, protects bool) error {
	on := ownOf(target)
	var create []making
	var seen, counted string
	if protects {
		var err error
		if create, seen, counted, err = p.triggers(s.dialect, target); err != nil {
			return err
		}
	}
	verb := map[bool]string{true: "protect ", false: "unprotect "}[protects] + p.Table
	return s.run(ctx, db, verb, func(ctx context.Context, conn *sql.Conn) error {
		if err := s.protectable(ctx, conn, p, &on); err != nil && (protects || errors.Is(err, errNoTable)) {
			return s.refused(err)
		}
		all, err := s.triggers(ctx, conn)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(t trigger) bool { return t.own != on })
		if !protects && len(all) == 0 {
			return fmt.Errorf("%w: %s is not protected", lease.ErrTable, p.Table)
		}
		var statements []string
		if seen != "" {
			statements = append(statements, counted)
		}
		for _, c := range create {
			if !slices.ContainsFunc(all, func(t trigger) bool { return t.name == c.name }) {
				statements = append(statements, c.text)
			}
		}
		var counts []string // of what old triggers have counted
		for _, t := range all {
			if slices.ContainsFunc(create, func(c making) bool { return c.name == t.name }) {
				continue
			}
			statements = append(statements, "DROP TRIGGER `"+t.database+"`.`"+t.name+"`")
			if t.made.Seen != "" && t.made.Seen != seen {
				counts = append(counts, t.made.Seen)
			}
		}
		for _, statement := range statements {
			if err := s.exec(ctx, conn, statement); err != nil {
				return s.refused(err)
			}
		}
		for _, table := range slices.Compact(counts) { // not before: a trigger that is left writes to it
			_ = s.exec(ctx, conn, "DROP TABLE IF EXISTS "+table)
		}
		return nil
	})
}

var errNoTable = errors.New("there is no such table")

// protectable refuses a table that triggers cannot protect. It spells on as the catalog does.
func (s *session) protectable(ctx context.Context, conn *sql.Conn, p Protection, on *own) error {
	sections := protection(s.dialect)
	var kind, engine string
	err := conn.QueryRowContext(ctx, sections["table"], on.database, on.table).Scan(&kind, &engine,
		&on.database, &on.table)
	n := s.dialect.Names()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: cannot protect %s: %w", lease.ErrTable, on.table, errNoTable)
	case err != nil:
		return err
	case strings.EqualFold(on.database+"."+on.table, n.Schema+"."+n.Prefix+"rowlock"):
		return on.refuse("it has the locks")
	case strings.Contains(kind, "VIEW"):
		return on.refuse("it is a view: protect the tables below it")
	case kind != "BASE TABLE":
		return on.refuse("it is no table, but a %s", kind)
	case engine != "InnoDB":
		return on.refuse("a refusal undoes nothing in an engine other than InnoDB, and its engine is %s", engine)
	}
	if n, err := s.cascades(ctx, conn, *on); err != nil || n > 0 {
		return cmp.Or(err, on.refuse("a foreign key of it has CASCADE or SET NULL, and what that does to its rows "+
			"fires no trigger: make it RESTRICT"))
	}
	if err := s.haveKey(ctx, conn, p, *on); err != nil {
		return err
	}
	rows, err := conn.QueryContext(ctx, strings.ReplaceAll(sections["readable"], "@locks", n.Table("rowlock", "`")))
	if err == nil {
		err = errors.Join(rows.Close(), rows.Err())
	}
	return err
}

// cascades counts the foreign keys whose actions write to the table.
func (s *session) cascades(ctx context.Context, conn *sql.Conn, on own) (n int, err error) {
	err = conn.QueryRowContext(ctx, protection(s.dialect)["cascades"], on.database, on.table).Scan(&n)
	return n, err
}

// haveKey refuses a table without the key's columns, or with one that has several texts for a
// value.
func (s *session) haveKey(ctx context.Context, conn *sql.Conn, p Protection, on own) error {
	rows, err := conn.QueryContext(ctx, protection(s.dialect)["columns"], on.database, on.table)
	if err != nil {
		return err
	}
	defer rows.Close()
	fits, types := map[string]bool{}, map[string]string{}
	for rows.Next() {
		var name, kind, full, charset string
		if err := rows.Scan(&name, &kind, &full, &charset); err != nil {
			return err
		}
		text := strings.HasSuffix(kind, "char") || strings.HasSuffix(kind, "text")
		types[name] = full
		fits[name] = kind == "uuid" || strings.HasSuffix(kind, "int") && !strings.Contains(full, "zerofill") ||
			text && charset != "" && charset != "binary"
	}
	_, columns, err := p.key()
	for _, name := range columns {
		if err == nil && types[name] == "" {
			err = on.refuse("it has no column %s, which the key names", name)
		}
		if err == nil && !fits[name] {
			err = on.refuse("its column %s is of type %s, whose text need not be the key's: integers, char, varchar, "+
				"text and uuid are taken", name, types[name])
		}
	}
	return errors.Join(err, rows.Err())
}

var toldTrigger = regexp.MustCompile(`DO 0x([0-9a-fA-F]+)`)

// triggers returns those that the user may see.
func (s *session) triggers(ctx context.Context, conn *sql.Conn) (all []trigger, err error) {
	n, text := s.dialect.Names(), protection(s.dialect)["triggers"]
	rows, err := conn.QueryContext(ctx, text, n.Prefix+"rowlock_protect_", n.Schema, n.Table("rowlock", "`"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t trigger
		var text string
		if err := rows.Scan(&t.database, &t.table, &t.name, &t.event, &text); err != nil {
			return nil, err
		}
		if found := toldTrigger.FindStringSubmatch(text); found != nil {
			told, _ := hex.DecodeString(found[1])
			_ = json.Unmarshal(told, &t.made) // what Protect has not made is listed without a key
		}
		if t.made.Seen != "" && !strings.Contains(t.made.Seen, ".") {
			t.made.Seen = "`" + t.database + "`." + t.made.Seen
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// triggered is protected for MySQL and MariaDB.
func (s *session) triggered(ctx context.Context, conn *sql.Conn) (all []ProtectedTable, err error) {
	if err := s.exec(ctx, conn, s.dialect.Plain); err != nil {
		return nil, err
	}
	counts := protection(s.dialect)["seen"]
	triggers, err := s.triggers(ctx, conn)
	if err != nil {
		return nil, err
	}
	for len(triggers) > 0 {
		first := triggers[0]
		t := ProtectedTable{Protection: first.made.Protection}
		t.Table = first.database + "." + first.table
		cascades, err := s.cascades(ctx, conn, first.own)
		if err != nil {
			return nil, err
		}
		of := func(o trigger) bool { return o.own == first.own }
		for _, event := range events {
			fires := slices.ContainsFunc(triggers, func(o trigger) bool { return of(o) && o.event == event })
			if !fires || cascades > 0 && event != "insert" {
				t.Missing = append(t.Missing, event)
			}
		}
		if seen := first.made.Seen; seen != "" {
			if err := t.count(ctx, conn, strings.ReplaceAll(counts, "@seen", seen)); err != nil {
				return nil, err
			}
		}
		all, triggers = append(all, t), slices.DeleteFunc(triggers, of)
	}
	return all, nil
}
