package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock/once/oncehttp"
)

type shop struct{ db *sqlx.DB }

// order is an ordinary handler, but for one thing: it writes in the transaction of the request,
// which is committed together with its answer. A client that asks again with the same
// Idempotency-Key gets that answer, and this is not called.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		refuse(w, http.StatusBadRequest, "not an order in JSON: "+err.Error())
		return
	}
	o.Account = accountOf(r)
	err := o.check()
	if err == nil {
		err = o.place(r.Context(), s.db, oncehttp.Tx(r.Context()))
	}
	switch {
	case errors.Is(err, errBadOrder):
		refuse(w, http.StatusBadRequest, err.Error())
	case err != nil:
		// All is rolled back. After a deadlock this is called again at once, and its answer discarded.
		oncehttp.Fail(r.Context(), err)
		refuse(w, http.StatusInternalServerError, "the order could not be written; ask again")
	default:
		w.Header().Set("Location", "/orders/"+o.ID)
		answer(w, http.StatusCreated, o)
	}
}

func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	o, err := find(r.Context(), s.db, accountOf(r), r.PathValue("id"))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		refuse(w, http.StatusNotFound, "there is no such order")
	case err != nil:
		refuse(w, http.StatusInternalServerError, "the order could not be read")
	default:
		answer(w, http.StatusOK, o)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // to a client that has gone there is nothing to say
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}
