package tokenfence_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/tokenfence"
)

func TestAnOlderTokenIsRefusedAndChangesNothing(t *testing.T) {
	each(t, func(s *site) {
		for _, token := range []lease.Token{7, 7, 9, 9} { // a holder writes in any number of transactions
			s.ok(s.pass(token))
			s.wantToken(token)
		}
		s.wantIs(s.pass(8), lease.ErrFenced, s.at.Table, `"q3"`, "token 9", "has 8", "roll back")
		s.wantIs(s.pass(1), lease.ErrFenced)
		s.wantToken(9)
		s.ok(s.pass(lease.MaxToken - 1))
	})
}

func TestATransactionThatIsRolledBackLeavesTheToken(t *testing.T) {
	each(t, func(s *site) {
		s.ok(s.pass(7))
		tx := s.begin()
		s.ok(s.fence.Pass(s.Context(), tx, "q3", 9))
		s.ok(tx.Rollback())
		s.wantToken(7)
		s.ok(s.pass(8))
	})
}

// The newer passes while the older waits in Pass, and the other way round. A read before the write
// would let the older one through.
func TestTwoTransactionsNeverPassSideBySide(t *testing.T) {
	each(t, func(s *site) {
		for _, first := range []lease.Token{9, 7} {
			second := 16 - first
			s.reset()
			tx := s.begin()
			s.ok(s.fence.Pass(s.Context(), tx, "q3", first))
			done := make(chan error, 1)
			go func() { done <- s.pass(second) }()
			select {
			case err := <-done:
				s.Errorf("token %d did not wait for %d: %v", second, first, err)
			case <-time.After(200 * time.Millisecond):
			}
			s.ok(tx.Commit())
			err := s.soon(done)
			if second < first {
				s.wantIs(err, lease.ErrFenced, "token 9", "has 7")
			} else {
				s.ok(err)
			}
			s.wantToken(9)
		}
	})
}

// reset does what an operator does when tokens have begun again, and removes a row that Pass makes.
func (s *site) reset() {
	s.Helper()
	if s.at.Create {
		s.env.Exec(s.T, `DELETE FROM `+s.at.Table)
		return
	}
	s.env.Exec(s.T, `UPDATE `+s.at.Table+` SET token = 0`)
}

// A transaction that has read sees the row as of then, and must not be let through for that.
func TestATransactionWithAnOlderSnapshotIsRefused(t *testing.T) {
	levels := []sql.IsolationLevel{
		sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
	}
	each(t, func(s *site) {
		if s.env.Name == "sqlite" {
			s.Skip("a file has one level, and its writers go one after another")
		}
		s.env.Exec(s.T, `CREATE TABLE `+s.at.Table+`_other (n INTEGER)`)
		s.Cleanup(func() { s.env.Exec(s.T, `DROP TABLE `+s.at.Table+`_other`) })
		for _, level := range levels {
			s.ok(s.pass(1))
			tx := s.begin(level)
			var n int
			// The snapshot is of now.
			s.ok(tx.QueryRow(`SELECT COUNT(*) FROM ` + s.at.Table + `_other`).Scan(&n))
			s.ok(s.pass(9))
			err := s.fence.Pass(s.Context(), tx, "q3", 8)
			if !busy(err) {
				s.wantIs(err, lease.ErrFenced)
			}
			s.ok(tx.Rollback())
			s.wantToken(9)
			s.reset()
		}
	})
}

// MySQL's drivers count matched rows or changed rows, as the DSN says.
func TestAnEqualTokenPassesHoweverRowsAreCounted(t *testing.T) {
	each(t, func(s *site) {
		if s.env.Driver != "mysql" {
			s.Skip("rows are counted in one way")
		}
		for _, found := range []string{"true", "false"} {
			s.usePool("clientFoundRows=" + found)
			for _, token := range []lease.Token{7, 7, 8, 8} {
				s.ok(s.pass(token))
				s.wantToken(token)
			}
			s.wantIs(s.pass(7), lease.ErrFenced)
			s.reset()
		}
	})
}

// usePool goes on with a pool whose DSN has a setting more.
func (s *site) usePool(setting string) {
	s.Helper()
	separator := "?"
	if strings.Contains(s.env.Source, "?") {
		separator = "&"
	}
	db, err := sql.Open(s.env.Driver, s.env.Source+separator+setting)
	s.ok(err)
	s.Cleanup(func() { _ = db.Close() })
	other := *s.env
	other.DB = db
	s.env = &other
}

func TestAMissingRowIsMadeOnlyInATableOfTokens(t *testing.T) {
	each(t, func(s *site) {
		err := s.passKey("q4", 7)
		if s.at.Create {
			s.ok(err)
			s.wantIs(s.passKey("q4", 6), lease.ErrFenced)
			return
		}
		s.wantIs(err, tokenfence.ErrMissing, s.at.Table, `"q4"`, "Rows.Create")
	})
}

// The row can be made in the transaction that found it missing.
func TestAMissingRowCanBeInsertedWithItsToken(t *testing.T) {
	each(t, func(s *site) {
		if s.at.Create {
			s.Skip("it is made")
		}
		tx := s.begin()
		s.wantIs(s.fence.Pass(s.Context(), tx, "q4", 7), tokenfence.ErrMissing)
		made := s.env.SQL(`INSERT INTO ` + s.at.Table + ` (id, body, token) VALUES (?, 'new', ?)`)
		_, err := tx.Exec(made, "q4", 7)
		s.ok(err)
		s.ok(tx.Commit())
		s.wantIs(s.passKey("q4", 6), lease.ErrFenced)
		s.ok(s.passKey("q4", 7))
	})
}
