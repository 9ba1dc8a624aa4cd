package tenants

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/optimistic"
)

// order is a row of the application's own table.
type order struct {
	ID      int64 `db:"id"`
	N       int64 `db:"n"`
	Version int64 `db:"version"`
}

// orders makes the application's own table in the schema of the DSN, and one of the same name to
// which sessions are led. Each has a row 1, with n 1 and n 2.
func (s scene) orders() (name string) {
	s.Helper()
	name = s.Env.Dialect.Names().Prefix + "orders"
	columns := name + ` (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, version BIGINT NOT NULL)`
	s.Exec(s.Env.DB, `CREATE TABLE `+columns)
	s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+name) })
	s.Exec(s.Env.DB, `INSERT INTO `+name+` VALUES (1, 1, 0)`)
	if s.tenant != "" {
		s.Exec(s.Env.DB, `CREATE TABLE `+s.tenant+`.`+columns)
		s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+s.tenant+`.`+name) })
		s.Exec(s.Env.DB, `INSERT INTO `+s.tenant+`.`+name+` VALUES (1, 2, 0)`)
	}
	return name
}

// eachOwn runs f with a pool whose sessions lead to another table of the application's own name.
func eachOwn(t *testing.T, f func(s scene, name string)) {
	t.Helper()
	servertest.Each(t, func(e *servertest.Scene) {
		s := scene{Scene: e}
		if !e.Is("sqlite") {
			s = elsewhere(e)
		}
		name := s.orders()
		if e.Is("sqlite") {
			s.lead = []string{
				`CREATE TEMPORARY TABLE ` + name + ` AS SELECT * FROM main.` + name,
				`UPDATE temp.` + name + ` SET n = 2`,
			}
		}
		f(s, name)
	})
}

// A table that is made in a later schema of the default path is found there, although it was looked
// for in the first before.
func TestATableOfYourOwnMayBeMadeAfterItsFirstUse(t *testing.T) {
	servertest.On(t, "postgres", func(e *servertest.Scene) {
		s := elsewhere(e)
		name := s.Env.Dialect.Names().Prefix + "orders"
		db := s.With("search_path=" + s.tenant + ",public").Env.Pool(s)
		table := s.table(name)
		_, err := table.Get(s.Context(), db, 1)
		s.WantErr(err, rowlock.ErrTable)
		s.Exec(s.Env.DB, `CREATE TABLE public.`+name+` (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, version BIGINT NOT NULL)`)
		s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE public.`+name) })
		_, err = table.Get(s.Context(), db, 1)
		s.WantErr(err, optimistic.ErrNotFound)
	})
}

func (s scene) table(name string) *optimistic.Table[order] {
	s.Helper()
	table, err := optimistic.NewTable[order](s.Env.Dialect, name)
	s.OK(err)
	return table
}

// Through a pool a name without a schema is one table, on whatever session a statement runs.
func TestATableOfYourOwnIsOneForEverySessionOfAPool(t *testing.T) {
	eachOwn(t, func(s scene, name string) {
		db := s.pool()
		s.astray(db)
		table := s.table(name)
		row, err := table.Get(s.Context(), db, 1)
		s.OK(err)
		if row.N != 1 {
			s.Error("Get has read another table")
		}
		s.astray(db)
		row.N = 10
		s.OK(table.Update(s.Context(), db, &row))
		row.Version = 0
		s.WantErr(table.Update(s.Context(), db, &row), optimistic.ErrConflict)
		s.astray(db)
		s.OK(table.Modify(s.Context(), db, []any{1}, func(rows []*order) error { rows[0].N++; return nil }))
		after, err := table.Get(s.Context(), s.Env.Pool(s), 1)
		s.OK(err)
		if after.N != 11 || after.Version != 2 {
			s.Errorf("the row of the DSN's table is %+v", after)
		}
	})
}

// A transaction or a connection that the application hands over leads where it has led them.
func TestATableOfYourOwnIsThatOfYourTransactionAndConnection(t *testing.T) {
	eachOwn(t, func(s scene, name string) {
		table := s.table(name)
		tx := s.begin()
		row, err := table.Get(s.Context(), tx, 1)
		s.OK(err)
		if row.N != 2 {
			s.Error("a transaction does not see its own session's table")
		}
		s.OK(tx.Rollback())
		conn := s.led(s.pool())
		defer conn.Close()
		s.OK(table.Modify(s.Context(), conn, []any{1}, func(rows []*order) error { rows[0].N += 5; return nil }))
		row, err = table.Get(s.Context(), conn, 1)
		s.OK(err)
		if row.N != 7 {
			s.Error("a connection does not see its own session's table")
		}
	})
}

// A table that no new connection finds is not searched for in the session of the moment, and is
// found once it is there.
func TestATableOfYourOwnThatIsNotThereIsNamed(t *testing.T) {
	eachSchema(t, func(s scene) {
		name := s.Env.Dialect.Names().Prefix + "orders"
		columns := name + ` (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, version BIGINT NOT NULL)`
		s.Exec(s.Env.DB, `CREATE TABLE `+s.tenant+`.`+columns)
		s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+s.tenant+`.`+name) })
		s.Exec(s.Env.DB, `INSERT INTO `+s.tenant+`.`+name+` VALUES (1, 2, 0)`)
		db, table := s.pool(), s.table(name)
		s.astray(db)
		_, err := table.Get(s.Context(), db, 1)
		s.WantErr(err, rowlock.ErrTable)
		s.Exec(s.Env.DB, `CREATE TABLE `+columns)
		s.Cleanup(func() { _, _ = s.Env.DB.ExecContext(context.Background(), `DROP TABLE `+name) })
		_, err = table.Get(s.Context(), db, 1)
		s.WantErr(err, optimistic.ErrNotFound)
		_, err = s.table(s.tenant+"."+name).Get(s.Context(), db, 1)
		s.OK(err)
	})
}
