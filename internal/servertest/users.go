package servertest

import (
	"context"
	"net/url"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// Migrated is another set of tables, on any database of the same kind.
func (s *Scene) Migrated(source string, opts ...dialect.Option) *Scene {
	s.Helper()
	e := &testdb.Env{Kind: s.Env.Kind, Dialect: s.Env.New(opts...), Source: source}
	e.DB = e.Pool(s)
	s.OK(schema.Migrate(s.Context(), e.DB, e.Dialect))
	s.Cleanup(func() { s.OK(schema.Uninstall(context.Background(), e.DB, e.Dialect)) })
	return &Scene{s.T, e}
}

// User makes a database user without rights, and returns the scene as it sees it.
func (s *Scene) User() (name string, seen *Scene) {
	s.Helper()
	name = s.Env.Dialect.Names().Prefix + "user"
	e := *s.Env
	if s.Is("postgres") {
		s.Exec(s.Env.DB, `CREATE ROLE `+name+` LOGIN`)
		s.Cleanup(func() {
			s.Env.Exec(s, `DROP OWNED BY `+name)
			s.Env.Exec(s, `DROP ROLE `+name)
		})
		u, err := url.Parse(e.Source)
		s.OK(err)
		u.User = url.User(name)
		e.Source = u.String()
	} else {
		s.Exec(s.Env.DB, `CREATE USER `+name)
		s.Cleanup(func() { s.Env.Exec(s, `DROP USER `+name) })
		e.Source = name + strings.TrimPrefix(e.Source, e.Source[:strings.Index(e.Source, "@")])
	}
	return name, &Scene{s.T, &e}
}

// Needed are the privileges of a database user, table by table: all that a client needs
// where readers share keys, and nothing else.
var Needed = map[string][]string{
	"rowlock":       {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_floor": {"SELECT", "UPDATE"},
	"rowlock_queue": {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_wait":  {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_meta":  {"SELECT", "INSERT", "UPDATE", "DELETE"},

	"rowlock_member": {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_limit":  {"SELECT", "INSERT", "UPDATE"},
}

// Grant grants a database user what it needs.
func (s *Scene) Grant(user string) {
	s.Helper()
	for table, rights := range Needed {
		s.Exec(s.Env.DB, `GRANT `+strings.Join(rights, ", ")+` ON {`+table+`} TO `+user)
	}
}
