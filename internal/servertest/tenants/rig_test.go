package tenants

import (
	"database/sql"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// idle is how many connections an application returns to a pool.
const idle = 8

// scene is a database on which an application leads sessions astray.
type scene struct {
	*servertest.Scene
	tenant string   // the schema or database with tables of the same names; SQLite has none
	lead   []string // what the application sends on a connection before it returns it
}

// each runs f with sessions of each kind, on every database.
func each(t *testing.T, f func(s scene)) {
	t.Helper()
	servertest.Each(t, func(s *servertest.Scene) {
		if !s.Is("sqlite") {
			s.Part("another schema", func(p *servertest.Scene) { f(elsewhere(p)) })
		}
		s.Part("temporary tables", func(p *servertest.Scene) { f(scene{Scene: p, lead: temporary(p)}) })
	})
}

// eachSchema leaves temporary tables out, where they are the user's own affair.
func eachSchema(t *testing.T, f func(s scene)) {
	t.Helper()
	servertest.EachServer(t, func(s *servertest.Scene) { f(elsewhere(s)) })
}

func elsewhere(s *servertest.Scene) scene {
	s.Helper()
	prefix := s.Env.Dialect.Names().Prefix
	name := prefix + "tenant"
	what, lead := "DATABASE ", "USE "+name
	if s.Is("postgres") {
		what, lead = "SCHEMA ", "SET search_path = "+name
	}
	s.Exec(s.Env.DB, "CREATE "+what+name)
	s.Cleanup(func() { s.Env.Exec(s, "DROP "+what+name) })
	s.Migrated(s.Env.Source, dialect.Schema(name), dialect.Prefix(prefix))
	return scene{s, name, []string{lead}}
}

var shadowed = []string{
	"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta",
	"rowlock_member", "rowlock_limit", "rowlock_once", "rowlock_hold", "rowlock_latch", "rowlock_party",
}

func temporary(s *servertest.Scene) (lead []string) {
	for _, table := range shadowed {
		name := s.Env.Table(table)
		in := map[string]string{"sqlite": "main.", "postgres": "public."}[s.Env.Name]
		copied := "CREATE TEMPORARY TABLE " + name + " (LIKE " + in + name + " INCLUDING ALL)"
		if s.Env.Driver == "mysql" {
			copied = "CREATE TEMPORARY TABLE " + name + " (n INT)"
		}
		if s.Is("sqlite") {
			copied = "CREATE TEMPORARY TABLE " + name + " AS SELECT * FROM " + in + name + " WHERE false"
		}
		lead = append(lead, copied)
	}
	return lead
}

// pool is another pool on the database, that keeps what the application returns.
func (s scene) pool() *sql.DB {
	db := s.Env.Pool(s)
	db.SetMaxIdleConns(idle)
	return db
}

// astray leads every idle connection of a pool elsewhere.
func (s scene) astray(db *sql.DB) {
	s.Helper()
	conns := make([]*sql.Conn, idle)
	for i := range conns {
		conns[i] = s.led(db)
	}
	for _, c := range conns {
		s.OK(c.Close())
	}
}

// led is a connection that leads elsewhere.
func (s scene) led(db *sql.DB) *sql.Conn {
	s.Helper()
	c, err := db.Conn(s.Context())
	s.OK(err)
	for _, statement := range s.lead {
		if _, err := c.ExecContext(s.Context(), statement); err != nil && !strings.Contains(err.Error(), "already exists") {
			s.Fatal(statement, err)
		}
	}
	return c
}

// killable is a pool whose sessions the server ends when asked to.
func (s scene) killable() (db *sql.DB, kill func()) {
	s.Helper()
	name := s.Env.Dialect.Names().Prefix + "killed"
	e := *s.Env
	list, end := `SELECT pid FROM pg_stat_activity WHERE application_name = '`+name+`'`, `SELECT pg_terminate_backend(`
	if s.Is("postgres") {
		e.Source += "&application_name=" + name
	} else {
		s.Exec(s.Env.DB, `CREATE USER `+name)
		s.Exec(s.Env.DB, `GRANT ALL ON *.* TO `+name)
		s.Cleanup(func() { s.Env.Exec(s, `DROP USER `+name) })
		cfg, err := mysqldriver.ParseDSN(e.Source)
		s.OK(err)
		cfg.User, cfg.Passwd = name, ""
		e.Source = cfg.FormatDSN()
		list, end = `SELECT processlist_id FROM performance_schema.threads WHERE processlist_user = '`+name+`'`, `KILL (`
		if s.Is("mariadb") {
			list = `SELECT id FROM information_schema.processlist WHERE user = '` + name + `'`
		}
	}
	db = e.Pool(s)
	db.SetMaxIdleConns(idle)
	return db, func() {
		s.Helper()
		for _, id := range s.ids(list) {
			_, _ = s.Env.DB.ExecContext(s.Context(), end+id+`)`)
		}
		s.Eventually("the sessions to end", func() bool { return len(s.ids(list)) == 0 })
	}
}

func (s scene) ids(list string) (all []string) {
	s.Helper()
	rows, err := s.Env.DB.QueryContext(s.Context(), list)
	s.OK(err)
	defer rows.Close()
	for rows.Next() {
		var id string
		s.OK(rows.Scan(&id))
		all = append(all, id)
	}
	s.OK(rows.Err())
	return all
}
