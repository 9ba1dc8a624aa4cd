package optimistic_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// A column that is NULL is a nil pointer, and is NULL again after an update that does not mean it,
// or does not write it at all.
func TestANilPointerIsNULLAndStaysIt(t *testing.T) {
	type Place struct {
		City *string `db:"city"`
	}
	type person struct {
		ID    int64   `db:"id"`
		Email *string `db:"email"`
		*Place
		Version int64 `db:"version"`
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		name := own(e, "people")
		create(t, e, name, `id BIGINT PRIMARY KEY, email VARCHAR(50), city VARCHAR(50), version BIGINT NOT NULL`)
		e.Exec(t, `INSERT INTO `+name+` VALUES (1, NULL, NULL, 1)`)
		tab := tableOf[person](t, e, name)
		p, err := tab.Get(t.Context(), e.DB, 1)
		ok(t, err)
		ok(t, tab.Update(t.Context(), e.DB, &p))
		ok(t, tab.Update(t.Context(), e.DB, &person{ID: 1, Version: 2}))
		ok(t, tab.Modify(t.Context(), e.DB, []any{1}, func(rows []*person) error {
			if rows[0].Email != nil || rows[0].City != nil {
				t.Errorf("NULL was read as %q, %q", *rows[0].Email, *rows[0].City)
			}
			return nil
		}))
		now, err := tab.Get(t.Context(), e.DB, 1)
		ok(t, err)
		if p.Email != nil || p.City != nil || now.Email != nil || now.City != nil || now.Version != 3 {
			t.Errorf("NULL was written as something else: %+v, %+v", p, now)
		}
	})
}

type hidden struct {
	ID int64 `db:"id"`
}

// A struct is refused if a field of it would be left out in silence, or could not be filled.
func TestNewTableRefusesAStructOfWhichAColumnWouldBeLost(t *testing.T) {
	d := testdb.Kinds[0].New()
	refuse := func(err error, says string) {
		t.Helper()
		wantIs(t, err, lease.ErrConfig)
		wantSays(t, err, says)
	}
	_, err := optimistic.NewTable[struct {
		ID, Version int
		A           int `db:"a"`
		B           int `db:"a"`
	}](d, "t")
	refuse(err, `"a" is that of A too`)
	_, err = optimistic.NewTable[struct {
		ID, Version int
		A           int `db:"s.a"`
	}](d, "t")
	refuse(err, "s.a")
	_, err = optimistic.NewTable[struct {
		ID, Version int
		account     `db:"acc"`
	}](d, "t")
	refuse(err, `"acc" would make it one column`)
	_, err = optimistic.NewTable[struct {
		*hidden
		Version int
	}](d, "t")
	refuse(err, "embed the struct itself")
	_, err = optimistic.NewTable[struct {
		hidden
		ID      string `db:"id"` // the outer one is the column, as in Go
		Version int
	}](d, "t")
	ok(t, err)
}
