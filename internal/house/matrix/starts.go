package main

import "regexp"

// suite is a package whose tests run on each server.
type suite struct {
	pkg  string
	what string // the head of its column
}

// The last takes longest.
var suites = []suite{
	{"internal/upgrade", "upgrade"},
	{"internal/servertest/fence", "fences"},
	{"tokenfence", "tokens"},
	{"doctor", "doctor"},
	{"internal/table/conformance", "conformance"},
}

// start is one run of the suites, beside servers that are started for it.
type start struct {
	servers []string // as scripts/with-servers names them
	base    string   // "postgres" or "mariadb", if it has another version than the machine's
	version string   // what scripts/version fetches
	rows    []kind
}

// kind is what a row of the table counts: tests whose names have the kind of database.
type kind struct {
	name string // of the row
	kind string // in tests' names, and what with-servers says is ready
}

var starts = []start{
	another("postgres", "13.23.0-beta.16", "PostgreSQL 13"),
	another("postgres", "14.23.0-beta.17", "PostgreSQL 14"),
	{
		servers: []string{"postgres", "pgbouncer", "mariadb", "mysql"},
		rows: []kind{
			{"PostgreSQL 15", "postgres"},
			{"PgBouncer, transaction mode", "pgbouncer"},
			{"MariaDB 10.11", "mariadb"},
			{"MySQL 9.7", "mysql"},
			{"SQLite, modernc.org/sqlite", "sqlite"},
		},
	},
	another("postgres", "16.14.0-beta.17", "PostgreSQL 16"),
	another("postgres", "17.10.0-beta.17", "PostgreSQL 17"),
	another("postgres", "18.4.0-beta.17", "PostgreSQL 18"),
	another("mariadb", "11.4.5", "MariaDB 11.4"),
	another("mariadb", "trixie", "MariaDB 11.8"),
}

// missing are versions that users have and no registry has.
var missing = []row{
	{Name: "MySQL 8.0", Missing: "no registry that the run may ask has its server"},
	{Name: "MySQL 8.4", Missing: "no registry that the run may ask has its server"},
}

func another(kindOf, version, name string) start {
	return start{
		servers: []string{kindOf}, base: kindOf, version: version, rows: []kind{{name, kindOf}},
	}
}

func (s *start) hasRow(wanted *regexp.Regexp) bool {
	for _, k := range s.rows {
		if wanted.MatchString(k.name) {
			return true
		}
	}
	return false
}

// has reports whether the start runs on a kind of database. SQLite needs no server.
func (s *start) has(kindOf string) bool {
	for _, k := range s.rows {
		if k.kind == kindOf {
			return true
		}
	}
	return false
}
