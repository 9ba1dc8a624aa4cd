package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// house is the account that interest comes from. It may owe.
const house = "house"

type bank struct {
	db    *source.DB
	locks *rowlock.Client
}

// errRefused is the customer's mistake.
var errRefused = errors.New("refused")

// key is what an account is locked by. Whoever moves money holds both accounts: it reads a balance
// and writes what follows from it.
func key(account string) string { return "account/" + account }

// lockBoth takes the locks of a request for its transaction, which is committed together with the
// answer before they are released.
func (b *bank) lockBoth(ctx context.Context, r *http.Request) (oncehttp.Lock, error) {
	ls, err := b.locks.LockAll(ctx, []string{key(r.PathValue("from")), key(r.PathValue("to"))})
	if err != nil {
		return nil, err
	}
	return ls, nil
}

// transfer is an ordinary handler, in the transaction of its request.
func (b *bank) transfer(w http.ResponseWriter, r *http.Request) {
	var order struct{ Cents int64 }
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Cents < 1 {
		answer(w, http.StatusBadRequest, `send {"cents": …}, at least 1`)
		return
	}
	from, to := r.PathValue("from"), r.PathValue("to")
	err := b.move(r.Context(), oncehttp.Tx(r.Context()), from, to, order.Cents, "transfer")
	switch {
	case errors.Is(err, errRefused):
		answer(w, http.StatusConflict, err.Error())
	case err != nil:
		oncehttp.Fail(r.Context(), err) // all is rolled back
		answer(w, http.StatusInternalServerError, "the transfer could not be written; ask again")
	default:
		answer(w, http.StatusCreated, fmt.Sprintf("%d cents from %s to %s", order.Cents, from, to))
	}
}

// move moves money in a transaction that has fenced the locks of both accounts.
func (b *bank) move(ctx context.Context, tx *sql.Tx, from, to string, cents int64, why string) error {
	if from == to {
		return fmt.Errorf("%w: from %s to %s", errRefused, from, to)
	}
	has, err := b.balance(ctx, tx, from)
	if err == nil && has < cents && from != house {
		return fmt.Errorf("%w: %s has %d cents", errRefused, from, has)
	}
	var gets int64
	if err == nil {
		gets, err = b.balance(ctx, tx, to)
	}
	for _, side := range []struct {
		account        string
		balance, entry int64
	}{{from, has - cents, -cents}, {to, gets + cents, cents}} {
		if err == nil {
			_, err = tx.ExecContext(ctx, b.db.Rebind(`UPDATE accounts SET cents = ? WHERE name = ?`), side.balance, side.account)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, b.db.Rebind(`INSERT INTO entries (account, cents, why) VALUES (?, ?, ?)`), side.account, side.entry, why)
		}
	}
	return err
}

func (b *bank) balance(ctx context.Context, tx *sql.Tx, account string) (cents int64, err error) {
	err = tx.QueryRowContext(ctx, b.db.Rebind(`SELECT cents FROM accounts WHERE name = ?`), account).Scan(&cents)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: there is no account %q", errRefused, account)
	}
	return cents, err
}

func (b *bank) show(w http.ResponseWriter, r *http.Request) {
	var cents int64
	err := b.db.GetContext(r.Context(), &cents, b.db.Rebind(`SELECT cents FROM accounts WHERE name = ?`), r.PathValue("name"))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		answer(w, http.StatusNotFound, "there is no such account")
	case err != nil:
		answer(w, http.StatusInternalServerError, "the account could not be read")
	default:
		answer(w, http.StatusOK, fmt.Sprintf("%d cents", cents))
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"answer": text}) // to a client that has gone there is nothing to say
}
