package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// borrowed is one of the dialect's statements under the name that it has for programs in other
// languages, with the names of its parameters in the statement's order.
type borrowed struct {
	name, from, file, parameters string
}

// lent are the statements for other languages. Every program runs the same names in the same order,
// whatever the database.
var lent = map[string][]borrowed{
	"postgres": {
		{"schema-version", "schema-version", "statements", ""},
		{"look", "cas-look", "cas", "owner key"},
		{"make", "acquire-insert", "statements", "key owner note ttl_us bucket"},
		{"take", "acquire-any", "statements", "key owner note ttl_us bucket"},
		{"renew", "confirm", "statements", "ttl_us key owner token"},
		{"fence", "fence", "statements", "key owner token extend_us"},
		{"release", "release", "statements", "key owner token process"},
	},
	"mysql": {
		{"schema-version", "schema-version", "statements", ""},
		{"look", "look", "statements", "owner key"},
		{"make", "acquire-insert", "statements", "key owner note ttl_us bucket key"},
		{"take", "acquire-expired", "statements", "owner note ttl_us key"},
		{"renew", "confirm", "statements", "ttl_us key owner token"},
		{"fence", "fence", "statements", "key owner token"},
		{"release", "release", "statements", "key owner token"},
	},
	"sqlite": {
		{"schema-version", "schema-version", "statements", ""},
		{"look", "look", "statements", "owner key"},
		{"make", "acquire-insert", "statements", "key owner note ttl_ms bucket"},
		{"take", "acquire-update", "statements", "ttl_ms owner note key"},
		{"renew", "confirm", "statements", "ttl_us key owner token"},
		{"fence", "fence", "statements", "key owner token extend_us"},
		{"release", "release", "statements", "key owner token"},
	},
}

// sessions are the settings without which the statements are not sound: what the dialects' Setup
// sets that a program in another language needs.
var sessions = map[string]string{
	"postgres": `SELECT set_config('default_transaction_isolation', 'read committed', false),
  set_config('lock_timeout', '1000', false), set_config('statement_timeout', '5000', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END, false)`,
	"mysql": `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
  innodb_lock_wait_timeout = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0,
  timestamp = DEFAULT`,
	"sqlite": `PRAGMA busy_timeout = 1000;
PRAGMA synchronous = FULL`,
}

const borrowedIntro = `-- What a program in any language needs to lock keys of rowlock on %s. docs/protocol.md says
-- when to run each, and what must never be done. These are the statements that rowlock itself runs.
-- Written by go generate ./dialect.
--
-- :name is a parameter: put your driver's placeholder there. A prefix of the tables goes before
-- each "rowlock".

-- name: session
-- First on each connection.
%s
`

func (r room) borrowedFile(root string) string {
	return filepath.Join(root, "examples", "languages", r.name+".sql")
}

// languages returns the text of examples/languages/NAME.sql.
func languages(root string, r room) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, borrowedIntro, r.title, sessions[r.name])
	for _, w := range lent[r.name] {
		text, err := os.ReadFile(filepath.Join(root, "dialect", r.name, w.file+".sql"))
		if err != nil {
			return "", err
		}
		s, err := w.named(string(text))
		if err != nil {
			return "", fmt.Errorf("dialect/%s/%s.sql: %w", r.name, w.file, err)
		}
		fmt.Fprintf(&b, "\n-- name: %s\n%s\n", w.name, s)
	}
	return b.String(), nil
}

// door is what the release of MySQL asks for its own push. A program in another language has none.
const door = `IF(LAST_INSERT_ID(IS_USED_LOCK(?) IS NOT NULL), '', '')`

var placeholder = regexp.MustCompile(`\$\d+|\?\d*`)

// named returns the statement with its parameters' names.
func (w borrowed) named(text string) (string, error) {
	for _, s := range sqlstore.CutSections(text) {
		if s.Name != w.from {
			continue
		}
		names, used, bad := strings.Fields(w.parameters), 0, false
		sql := placeholder.ReplaceAllStringFunc(strings.Replace(s.SQL, door, "''", 1), func(p string) string {
			n, err := strconv.Atoi(p[1:])
			if err != nil {
				used++
				n = used
			}
			if bad = bad || n < 1 || n > len(names); bad {
				return p
			}
			used = max(used, n)
			return ":" + names[n-1]
		})
		if bad || used != len(names) {
			return "", fmt.Errorf("%s does not have the parameters %q", w.from, w.parameters)
		}
		return fixed.Replace(sql), nil
	}
	return "", fmt.Errorf("there is no section %q", w.from)
}

// fixed fills in the names. A program in another language begins no era: it grants in the newest
// that a client of rowlock has begun.
var fixed = strings.NewReplacer("@placement", "0",
	"@last_token - 1", (lease.MaxToken - 2).String(), "@last_token", (lease.MaxToken - 1).String(),
	"@era", "(SELECT max(start) FROM rowlock_meta)")
