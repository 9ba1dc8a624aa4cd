package postgres

import (
	"cmp"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// longestName is how many bytes PostgreSQL keeps of an application_name.
const longestName = 63

// applicationName is what pg_stat_activity shows of a session that rowlock has to itself. It is
// ASCII, because PostgreSQL replaces every other byte, each version in its own way.
func applicationName(identity string) string {
	shown := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "rowlock: "+cmp.Or(identity, adapter.DefaultIdentity()))
	return adapter.CutText(shown, longestName)
}

// name is the call of set_config that names a session. A name that the application has chosen
// stays: in its DSN, or for its user or database. It takes no statement of its own.
func (d *database) name() string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(applicationName(d.settings.Identity))
	return `set_config('application_name', coalesce(nullif(current_setting('application_name'), ''), ` +
		`E'` + quoted + `'), false)`
}
