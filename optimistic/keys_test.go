package optimistic_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// A key that the database holds to be a row's finds the row, however the row spells it: Postgres
// fills a CHAR up with spaces, and MySQL does not tell 'ANN' from 'ann'.
func TestAKeyFindsTheRowThatTheDatabaseMeans(t *testing.T) {
	type user struct {
		ID      string `db:"id"`
		Version int    `db:"version"`
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		name := own(e, "users")
		column := map[string]string{"sqlite": "VARCHAR(10) COLLATE NOCASE"}[e.Name]
		if column == "" {
			column = "CHAR(10)"
		}
		create(t, e, name, `id `+column+` PRIMARY KEY, version INT NOT NULL`)
		e.Exec(t, `INSERT INTO `+name+` VALUES ('ann', 1), ('bob', 2), ('cid', 3)`)
		ann, anew, bob := "ANN", "Ann", "Bob" // not as the rows have them
		if e.Name == "postgres" {
			ann, anew, bob = "ann", "ann ", "bob" // which have more spaces
		}
		tab := tableOf[user](t, e, name)
		u, err := tab.Get(t.Context(), e.DB, ann)
		ok(t, err)
		ok(t, tab.Update(t.Context(), e.DB, &u))

		all, err := tab.Select(t.Context(), e.DB, []any{bob, "cid", ann})
		ok(t, err)
		if all[0].Version != 2 || all[1].Version != 3 || all[2].Version != 2 {
			t.Errorf("got %+v", all)
		}
		_, err = tab.Select(t.Context(), e.DB, []any{bob, "nobody", ann})
		wantIs(t, err, optimistic.ErrNotFound)
		wantSays(t, err, `users "nobody"`)

		// The same row under two names would be in its own way.
		_, err = tab.Select(t.Context(), e.DB, []any{ann, anew})
		wantIs(t, err, lease.ErrConfig)
		wantSays(t, err, "another spelling")
	})
}
