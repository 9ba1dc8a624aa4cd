package optimistic_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

func TestModifyWritesWhatWasChangedAndNothingElse(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 4)
		ok(t, tab.Modify(t.Context(), e.DB, []any{3, 1, 2}, func(rows []*account) error {
			for i, want := range []int64{3, 1, 2} {
				if rows[i].ID != want {
					t.Errorf("row %d is %+v, want id %d", i, rows[i], want)
				}
			}
			rows[0].Balance, rows[1].Balance = 103, 101
			return nil
		}))
		for id, want := range map[int64]account{1: {Balance: 101, Version: 2}, 2: {Balance: 100, Version: 1}, 3: {Balance: 103, Version: 2}, 4: {Balance: 100, Version: 1}} {
			if a := get(t, tab, e.DB, id); a.Balance != want.Balance || a.Version != want.Version {
				t.Errorf("got %+v, want %+v", a, want)
			}
		}
	})
}

// Another client changes the row that is written last: the first must not stay written alone.
func TestModifyIsAllOrNothingUnderConflict(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 2)
		calls := 0
		err := tab.Modify(t.Context(), e.DB, []any{1, 2}, func(rows []*account) error {
			calls++
			rows[0].Balance -= 10
			rows[1].Balance += 10
			e.Exec(t, `UPDATE `+own(e, "accounts")+` SET version = version + 1 WHERE id = 2`)
			return nil
		}, optimistic.Tries(3))
		wantIs(t, err, optimistic.ErrConflict)
		wantSays(t, err, "3 tries")
		var c *optimistic.ConflictError
		if !errors.As(err, &c) || c.Expected != 3 || c.Found != 4 || c.Key[0] != int64(2) {
			t.Errorf("got %+v", c)
		}
		if a := get(t, tab, e.DB, 1); a.Balance != 100 || a.Version != 1 || calls != 3 {
			t.Errorf("after %d calls and no success: %+v", calls, a)
		}

		ok(t, tab.Modify(t.Context(), e.DB, []any{1, 2}, func(rows []*account) error {
			if calls++; calls == 4 {
				e.Exec(t, `UPDATE `+own(e, "accounts")+` SET balance = 50, version = version + 1 WHERE id = 2`)
			}
			rows[0].Balance -= 10
			rows[1].Balance += 10
			return nil
		}))
		if a, b := get(t, tab, e.DB, 1), get(t, tab, e.DB, 2); a.Balance != 90 || b.Balance != 60 || calls != 5 {
			t.Errorf("after %d calls: %+v, %+v", calls, a, b)
		}
	})
}

func TestModifyNamesTheKeysThatAreMissing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 2)
		err := tab.Modify(t.Context(), e.DB, []any{1, 77, 88}, func([]*account) error {
			t.Error("the function was called")
			return nil
		})
		wantIs(t, err, optimistic.ErrNotFound)
		wantSays(t, err, "77", "88")
	})
}

func TestModifyWritesNothingWhenTheFunctionSaysNo(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	tab := accounts(t, e, 2)
	no := errors.New("no")
	for _, f := range []struct {
		change func(a *account)
		want   error
	}{{func(a *account) { a.Balance = 0 }, no}, {func(a *account) { a.ID = 9 }, lease.ErrConfig}, {func(a *account) { a.Version = 9 }, lease.ErrConfig}} {
		err := tab.Modify(t.Context(), e.DB, []any{1, 2}, func(rows []*account) error {
			rows[0].Balance = 1
			f.change(rows[1])
			if errors.Is(f.want, no) {
				return no
			}
			return nil
		})
		wantIs(t, err, f.want)
	}
	for _, id := range []int64{1, 2} {
		if a := get(t, tab, e.DB, id); a.Version != 1 {
			t.Errorf("written: %+v", a)
		}
	}
}

// f may sort the slice, but a row of its own in the place of one would be lost in silence.
func TestModifyRefusesARowThatWasPutInThePlaceOfAnother(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	tab := accounts(t, e, 2)
	err := tab.Modify(t.Context(), e.DB, []any{1, 2}, func(rows []*account) error {
		rows[0].Balance, rows[1] = 7, &account{ID: 2, Balance: 7, Version: 1}
		return nil
	})
	wantIs(t, err, lease.ErrConfig)
	wantSays(t, err, "accounts 2", "*rows[i]")
	ok(t, tab.Modify(t.Context(), e.DB, []any{1, 2}, func(rows []*account) error {
		slices.Reverse(rows)
		rows[0].Balance = 8
		return nil
	}))
	if a, b := get(t, tab, e.DB, 1), get(t, tab, e.DB, 2); a.Balance != 100 || b.Balance != 8 {
		t.Errorf("got %+v, %+v", a, b)
	}
}

// A []byte that is written in place is the same slice before and after.
func TestModifySeesBytesThatWereChangedInPlace(t *testing.T) {
	type blob struct {
		Tenant string `db:"tenant,key"`
		No     int    `db:"no,key"`
		Data   []byte `db:"data"`
		Note   *string
		Rev    int `db:"rev,version"`
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		binary := map[string]string{"pgx": "BYTEA"}[e.Driver]
		if binary == "" {
			binary = "BLOB"
		}
		create(t, e, own(e, "blobs"), `tenant VARCHAR(20), no INT, data `+binary+`, note VARCHAR(20), rev INT NOT NULL, PRIMARY KEY (tenant, no)`)
		for no := range 3 {
			e.Exec(t, `INSERT INTO `+own(e, "blobs")+` VALUES ('a', ?, ?, NULL, 0)`, no, []byte("abc"))
		}
		tab := tableOf[blob](t, e, own(e, "blobs"))
		ok(t, tab.Modify(t.Context(), e.DB, []any{[]any{"a", 2}, []any{"a", 0}}, func(rows []*blob) error {
			rows[0].Data[0] = 'X'
			note := "noted"
			rows[1].Note = &note
			return nil
		}))
		two, err := tab.Get(t.Context(), e.DB, "a", 2)
		ok(t, err)
		zero, err := tab.Get(t.Context(), e.DB, "a", 0)
		ok(t, err)
		if string(two.Data) != "Xbc" || two.Rev != 1 || zero.Note == nil || *zero.Note != "noted" || zero.Rev != 1 {
			t.Errorf("got %+v and %+v", two, zero)
		}
	})
}

// Batches that overlap, given in opposite orders: none is lost and none deadlocks for good.
func TestModifyKeepsTheSumAmongManyAtOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 4)
		e.DB.SetMaxOpenConns(8)
		var wg sync.WaitGroup
		for g := range 12 {
			wg.Go(func() {
				for i := range 4 {
					keys := []any{(g+i)%4 + 1, (g+i+1+g%3)%4 + 1}
					err := tab.Modify(t.Context(), e.DB, keys, func(rows []*account) error {
						rows[0].Balance--
						rows[1].Balance++
						return nil
					}, optimistic.Tries(200))
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sum, versions := int64(0), int64(0)
		for id := range int64(4) {
			a := get(t, tab, e.DB, id+1)
			sum, versions = sum+a.Balance, versions+a.Version-1
		}
		if sum != 400 || versions != 12*4*2 {
			t.Errorf("the sum is %d and was 400; there were %d changes, want %d", sum, versions, 12*4*2)
		}
	})
}

// The outcome of a commit whose reply was lost is unknown, and another try might do it twice.
func TestModifyDoesNotGuessWhatACommitCameTo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		db, err := faultdb.Open(e.Driver, e.Source, faultdb.LoseCommitReply())
		ok(t, err)
		defer db.Close()
		err = tab.Modify(context.Background(), db, []any{1}, func(rows []*account) error {
			rows[0].Balance++
			return nil
		})
		wantIs(t, err, lease.ErrUnknown)
		if a := get(t, tab, e.DB, 1); a.Balance != 101 {
			t.Errorf("got %+v, want one change", a)
		}
	})
}
