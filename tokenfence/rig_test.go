package tokenfence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/tokenfence"
)

// patience bounds what must come to an end.
const patience = 20 * time.Second

// site is a table that keeps tokens, in the two ways there are.
type site struct {
	*testing.T
	env   *testdb.Env
	fence *tokenfence.Fence
	at    tokenfence.Rows
}

// each runs f on every kind of database: with a row of the user's that has a token beside its
// data, and with a table of tokens alone, in which no row is made yet.
func each(t *testing.T, f func(s *site)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		t.Run("beside the data", func(t *testing.T) {
			s := beside(t, e, "report")
			s.row("q3")
			f(s)
		})
		t.Run("alone", func(t *testing.T) { f(alone(t, e, "lock_token")) })
	})
}

func beside(t *testing.T, e *testdb.Env, name string) *site {
	t.Helper()
	return newSite(t, e, name, tokenfence.Rows{Key: "id", Token: "token"},
		`id VARCHAR(50) PRIMARY KEY, body VARCHAR(50) NOT NULL, token BIGINT NOT NULL DEFAULT 0`)
}

func alone(t *testing.T, e *testdb.Env, name string) *site {
	t.Helper()
	return newSite(t, e, name, tokenfence.Rows{Key: "name", Token: "token", Create: true},
		`name VARCHAR(50) PRIMARY KEY, token BIGINT NOT NULL`)
}

func newSite(t *testing.T, e *testdb.Env, name string, at tokenfence.Rows, columns string) *site {
	t.Helper()
	at.Table = e.Dialect.Names().Prefix + name
	e.Exec(t, `CREATE TABLE `+at.Table+` (`+columns+`)`)
	t.Cleanup(func() { e.Exec(t, `DROP TABLE `+at.Table) })
	fence, err := tokenfence.New(e.Dialect, at)
	s := &site{t, e, fence, at}
	s.ok(err)
	return s
}

// row makes a row of a table that has data beside the tokens.
func (s *site) row(id string) {
	s.Helper()
	s.env.Exec(s.T, `INSERT INTO `+s.at.Table+` (id, body) VALUES (?, 'none')`, id)
}

func (s *site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) wantIs(err, target error, says ...string) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Errorf("got error %v, want %v", err, target)
		return
	}
	for _, text := range append(says, "rowlock: ") {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("error %v does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		s.Errorf("error of several lines: %v", err)
	}
}

// begin begins a transaction that is rolled back at the end of the test at the latest.
func (s *site) begin(level ...sql.IsolationLevel) *sql.Tx {
	s.Helper()
	opts := &sql.TxOptions{}
	for _, l := range level {
		opts.Isolation = l
	}
	tx, err := s.env.DB.BeginTx(context.Background(), opts)
	s.ok(err)
	s.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// pass passes the row q3 in a transaction of its own, which is committed if it passes.
func (s *site) pass(token lease.Token) error { return s.passKey("q3", token) }

func (s *site) passKey(key any, token lease.Token) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tx, err := s.env.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.fence.Pass(ctx, tx, key, token); err != nil {
		return err
	}
	return tx.Commit()
}

// wantToken wants the row q3 to have a token.
func (s *site) wantToken(want lease.Token) {
	s.Helper()
	var got lease.Token
	query := s.env.SQL(`SELECT token FROM ` + s.at.Table + ` WHERE ` + s.at.Key + ` = ?`)
	s.ok(s.env.DB.QueryRow(query, "q3").Scan(&got))
	if got != want {
		s.Errorf("the row has token %d, want %d", got, want)
	}
}

// soon returns what f returns, which must end.
func (s *site) soon(done <-chan error) error {
	s.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		s.Fatal("no end")
		return nil
	}
}

// busy reports whether a database asked for the transaction to be run again.
func busy(err error) bool { return errors.Is(err, lease.ErrBusy) }
