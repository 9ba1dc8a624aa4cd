package table_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// eachExpecting runs a test on the databases whose batches read their rows in a round trip of their
// own. The store was granted each of the keys, and has released it.
func eachExpecting(t *testing.T, f func(t *testing.T, r *rig, keys []string)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "mysql" && e.Name != "mariadb" {
			t.Skip("a batch reads its rows for nothing")
		}
		r, keys := newRig(t, e, adapter.Update, 1), numbered("recurring", 6)
		for _, key := range keys {
			release(t, r.store, hold(t, r.store, key))
		}
		f(t, r, keys)
	})
}

// batch has the store asked for all keys together, and returns the statements.
func (r *rig) batch(t *testing.T, keys []string) (statements []string) {
	t.Helper()
	c := r.gather(t)
	for _, key := range keys {
		last := r.row(t, key).Token
		c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, key, last) })
	}
	for _, op := range c.run(nil) {
		if op.Executes() {
			statements = append(statements, sectionOf(op))
		}
	}
	return statements
}

// sectionOf is the name that a statement has in its comment.
func sectionOf(op faultdb.Op) string {
	_, rest, _ := strings.Cut(op.Query, "/* rowlock ")
	name, _, _ := strings.Cut(rest, " */")
	return name
}

func wantStatements(t *testing.T, got []string, want string) {
	t.Helper()
	if all := strings.Join(got, " "); all != want {
		t.Errorf("statements %q, want %q", all, want)
	}
}

func (r *rig) releaseAll(t *testing.T, s interface {
	Release(context.Context, []lease.Lease) ([]lease.Released, error)
}, keys []string,
) {
	t.Helper()
	for _, key := range keys {
		if answers, err := s.Release(t.Context(), []lease.Lease{r.row(t, key).Lease}); err != nil || answers[0].Gone {
			t.Fatal(key, answers, err)
		}
	}
}

func TestABatchOfKeysThatThisProcessHadIsOneStatement(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		wantStatements(t, r.batch(t, keys), "apply")
		r.releaseAll(t, r.store, keys)
		wantStatements(t, r.batch(t, keys), "apply") // the first batch's tokens were learned too
	})
}

// Another process was granted some of the keys since: their rows have other tokens.
func TestABatchThatExpectsAnotherTokenIsGrantedTheRows(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		for _, key := range keys[:2] {
			release(t, r.clean, hold(t, r.clean, key))
		}
		wantStatements(t, r.batch(t, keys), "apply applied apply")
		r.releaseAll(t, r.store, keys)
		wantStatements(t, r.batch(t, keys), "rows apply") // they may be another's again
		r.releaseAll(t, r.store, keys)
		wantStatements(t, r.batch(t, keys), "apply")
	})
}

// After a batch that was mostly wrong, the rows of some are read again, as if there had been none.
func TestABatchThatWasMostlyWrongIsFollowedByBatchesThatRead(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		others := func() {
			for _, key := range keys {
				release(t, r.clean, hold(t, r.clean, key))
			}
		}
		others()
		wantStatements(t, r.batch(t, keys), "apply applied apply")
		for range 8 {
			r.releaseAll(t, r.store, keys)
			others()
			wantStatements(t, r.batch(t, keys), "rows apply")
		}
		r.releaseAll(t, r.store, keys)
		wantStatements(t, r.batch(t, keys), "rows apply") // the keys were another's the last time
		r.releaseAll(t, r.store, keys)
		wantStatements(t, r.batch(t, keys), "apply")
	})
}

// Keys that are held, expired or gone are answered as without an expectation.
func TestWhatWasNotExpectedIsAnsweredByItsRow(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		held := hold(t, r.clean, keys[0])
		hold(t, r.clean, keys[1])
		r.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte(keys[1]))
		r.Exec(t, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte(keys[2]))
		c := r.gather(t)
		c.add(t.Context(), func(ctx context.Context) {
			a, err := ask(ctx, r.store, request(held.Key))
			if err != nil || a.Granted || a.Holder.Note != "test" {
				t.Errorf("held: got %+v, %v", a, err)
			}
		})
		for _, key := range keys[1:] {
			last := r.row(t, key).Token
			c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, key, last) })
		}
		c.run(nil)
	})
}

// The second statement of a batch whose first was committed: what that has granted and released is
// not in doubt because of it, or is resolved.
func TestABatchThatFailsAfterAMistakeIsResolvedOneByOne(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		for name, fault := range map[string]faultdb.Fault{
			"never sent": faultdb.FailBeforeSend(), "reply lost": faultdb.LoseReply(),
		} {
			for n := int64(2); n <= 5; n++ { // the first is what keeps the pinned connection busy
				release(t, r.clean, hold(t, r.clean, keys[0]))
				held := hold(t, r.store, "held "+name)
				c := r.gather(t)
				for _, key := range keys {
					last := r.row(t, key).Token
					c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, key, last) })
				}
				c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, held) })
				c.run(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(n, fault)))
				r.releaseAll(t, r.clean, keys)
			}
		}
	})
}

// The second statement of a batch collides with another transaction: what the first has found out
// stays true. A holder's release that the first found Gone must say so.
func TestACollisionOfASecondTryHidesNothingOfTheFirst(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, keys []string) {
		release(t, r.clean, hold(t, r.clean, keys[0])) // another token than is expected
		lost := hold(t, r.store, "lost")
		r.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte("lost"))
		hold(t, r.clean, "lost") // another process has it now
		kept := hold(t, r.store, "kept")
		c := r.gather(t)
		for _, key := range keys {
			c.add(t.Context(), func(ctx context.Context) {
				a, err := ask(ctx, r.store, request(key))
				if err != nil || !a.Granted {
					t.Errorf("%s: %+v %v", key, a, err)
				}
				if key != keys[0] && a.Unknown {
					t.Errorf("%s was granted by the first statement, and is told as unknown", key)
				}
			})
		}
		c.add(t.Context(), func(ctx context.Context) {
			got, err := r.store.Release(ctx, []lease.Lease{lost})
			if err != nil || !got[0].Gone {
				t.Errorf("a lease that another process has is released with %+v, %v; want Gone", got, err)
			}
		})
		c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, kept) })
		deadlock := faultdb.FailBeforeSend().Reporting(&mysql.MySQLError{Number: 1213, Message: "Deadlock found"})
		second := func(op faultdb.Op) bool { return op.Executes() && sectionOf(op) == "apply" }
		c.run(faultdb.OnFunc(second, faultdb.Nth(2, deadlock)))
	})
}

// A key that another process had last is read again, and the others of its batch are not.
func TestAFewKeysOfOtherProcessesDoNotMakeEachBatchLonger(t *testing.T) {
	eachExpecting(t, func(t *testing.T, r *rig, _ []string) {
		keys := numbered("contended", 40)
		for _, key := range keys {
			release(t, r.store, hold(t, r.store, key))
		}
		total := 0
		for range 20 {
			for _, key := range keys[:2] {
				release(t, r.clean, hold(t, r.clean, key))
			}
			total += len(r.batch(t, keys))
			r.releaseAll(t, r.store, keys)
		}
		if total > 44 {
			t.Errorf("%d statements for 20 batches, which are 40 if each reads first", total)
		}
	})
}
