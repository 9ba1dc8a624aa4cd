package shedlock

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// found is what the database says of a table.
type found struct {
	columns map[string]column
	unique  bool   // no two rows have one name
	fleeing string // what may end its rows: it is not logged, or of an engine that does not recover
	zone    string // of the session, if it is not the server's
	charset string // of locked_by
}

// column is one of the table. Its type is as the database writes it: varchar(64).
type column struct {
	kind             string
	length           int // in characters, or of a time's fraction; -1: not said
	nullable, filled bool
}

var kinds = regexp.MustCompile(`^([a-z ]+?)(?:\((\d+)\))?( with(?:out)? time zone)?$`)

func newColumn(kind string, nullable, filled bool) column {
	c := column{kind: kind, length: -1, nullable: nullable, filled: filled}
	if parts := kinds.FindStringSubmatch(strings.ToLower(kind)); parts != nil {
		c.kind = parts[1] + parts[3]
		if n, err := strconv.Atoi(parts[2]); err == nil {
			c.length = n
		}
	}
	return c
}

// room is how many characters a column takes.
func (c column) room() int {
	if c.length < 0 {
		return 1 << 16
	}
	return c.length
}

var ours = []string{"name", "lock_until", "locked_at", "locked_by"}

// check returns what is wrong with a table, and what to do about it.
func (t found) check(table string, c catalog) error {
	bad := func(what, cure string) error {
		return fmt.Errorf("%w: shedlock: table %s: %s: %s", lease.ErrSchemaVersion, table, what, cure)
	}
	if len(t.columns) == 0 {
		return fmt.Errorf("%w: shedlock: there is no table %s: "+c.create, lease.ErrNoSchema, table, table)
	}
	for _, name := range ours {
		if what, to := t.columns[name].wrong(name, c); what != "" {
			return bad(name+" "+what, fmt.Sprintf(c.alter, table, name, to))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.columns)) {
		if other := t.columns[name]; !slices.Contains(ours, name) && !other.nullable && !other.filled {
			return bad("it has the column "+name+", which ShedLock does not fill", "give it a default, or let it be NULL")
		}
	}
	switch {
	case !t.unique:
		return bad("name is not unique, so that two processes could hold one", "ALTER TABLE "+table+" ADD PRIMARY KEY (name)")
	case t.fleeing != "":
		return fmt.Errorf("%w: shedlock: table %s is %s: %s", lease.ErrNotDurable, table, t.fleeing,
			fmt.Sprintf(c.keep, table))
	case t.zone != "" && (t.columns["lock_until"].kind == "timestamp" || t.columns["locked_at"].kind == "timestamp"):
		return fmt.Errorf("%w: shedlock: the pool sets time_zone to %q, on which TIMESTAMP columns depend: leave it out "+
			"of the DSN, or make lock_until and locked_at of table %s DATETIME(3)", lease.ErrConfig, t.zone, table)
	}
	return nil
}

// wrong says what is wrong with one of ShedLock's columns, and what it is to be.
func (c column) wrong(name string, in catalog) (what, to string) {
	isTime := name == "lock_until" || name == "locked_at"
	to, types := cmp.Or(map[string]string{"name": "VARCHAR(64)"}[name], "VARCHAR(255)"), in.texts
	if isTime {
		to, types = in.time, in.times
	}
	switch {
	case c.kind == "":
		return "is missing; if it has another name, rename it", to
	case !slices.Contains(types, c.kind):
		return "is a " + c.kind, to
	case isTime && (c.length == -1 && in.coarse || c.length >= 0 && c.length < 3):
		return "has no milliseconds", to
	case name == "locked_by" && c.room() < 2*ownerLength:
		return fmt.Sprintf("has %d characters", c.length), to
	case c.nullable:
		return "may be NULL, and a row with that is locked for ever", to
	}
	return "", ""
}
