package tokenfence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// Writers with random tokens append their token to the data under the row. However they meet, the
// tokens in the data never fall, and what has passed is all there.
func TestTokensInTheDataNeverFall(t *testing.T) {
	each(t, func(s *site) {
		s.env.Exec(s.T, `CREATE TABLE `+s.data()+` (n INTEGER PRIMARY KEY, token BIGINT NOT NULL)`)
		s.Cleanup(func() { s.env.Exec(s.T, `DROP TABLE `+s.data()) })
		var highest, passed, fenced atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for range 25 {
					token := max(1, highest.Add(rand.Int64N(3))-rand.Int64N(4))
					switch err := s.write(lease.Token(token)); {
					case err == nil:
						passed.Add(1)
					case errors.Is(err, lease.ErrFenced):
						fenced.Add(1)
					case !busy(err):
						s.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := s.rising(); n != passed.Load() || n == 0 || fenced.Load() == 0 {
			s.Errorf("%d writes are there, %d were committed, %d fenced", n, passed.Load(), fenced.Load())
		}
	})
}

func (s *site) data() string { return s.at.Table + "_data" }

// write appends a token to the data in a transaction that passes with it.
func (s *site) write(token lease.Token) error {
	tx, err := s.env.DB.BeginTx(s.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.fence.Pass(s.Context(), tx, "q3", token); err != nil {
		return err
	}
	var n int64
	if err := tx.QueryRow(`SELECT COALESCE(MAX(n), 0) FROM ` + s.data()).Scan(&n); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	add := s.env.SQL(`INSERT INTO ` + s.data() + ` (n, token) VALUES (?, ?)`)
	if _, err := tx.Exec(add, n+1, token); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	return tx.Commit()
}

// rising returns how many writes there are, of which none has a lower token than the one before.
func (s *site) rising() (n int64) {
	s.Helper()
	rows, err := s.env.DB.Query(`SELECT token FROM ` + s.data() + ` ORDER BY n`)
	s.ok(err)
	defer rows.Close()
	var last, token lease.Token
	for ; rows.Next(); n++ {
		s.ok(rows.Scan(&token))
		if token < last {
			s.Errorf("write %d has token %d after %d", n+1, token, last)
		}
		last = token
	}
	s.ok(rows.Err())
	return n
}

// At MySQL's default isolation a read of an absent row locks the gap where it would be, and two
// that then insert deadlock.
func TestKeysAreMadeSideBySide(t *testing.T) {
	each(t, func(s *site) {
		if !s.at.Create {
			s.Skip("no row is made")
		}
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				for j := range 8 {
					if err := s.passKey("key"+strconv.Itoa(j*12+i), 7); err != nil {
						s.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}
