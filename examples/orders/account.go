package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

type accountKey struct{}

// authenticate gives a request to next with the account whose secret it has. Its place is around
// everything: the account decides whose an Idempotency-Key is, and which orders can be read.
func (s *shop) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, err := s.accountWith(r.Context(), r.Header.Get("Authorization"))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "send Authorization: Bearer and the secret of an account")
		case err != nil:
			refuse(w, http.StatusInternalServerError, "the account could not be read; ask again")
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
		}
	})
}

// accountWith finds an account by the hash of its secret, so that the table has nothing to steal.
func (s *shop) accountWith(ctx context.Context, authorization string) (account string, err error) {
	secret, _ := strings.CutPrefix(authorization, "Bearer ")
	hash := sha256.Sum256([]byte(secret))
	err = s.db.GetContext(ctx, &account, s.db.Rebind(`SELECT name FROM accounts WHERE secret = ?`), hex.EncodeToString(hash[:]))
	return account, err
}

// accountOf is the authenticated account of a request, which nothing that the client sends can
// change.
func accountOf(r *http.Request) string {
	account, _ := r.Context().Value(accountKey{}).(string)
	return account
}
