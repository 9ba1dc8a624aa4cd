package console_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/memstore"
)

// operator reads an application's session.
func operator(r *http.Request) (string, error) { return r.Header.Get("X-Operator"), nil }

func ExampleHandler_database() {
	var db *sql.DB
	var mux *http.ServeMux
	locks, err := rowlock.Open(db, postgres.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := console.Handler(locks, console.Options{
		DB: db, Dialect: postgres.New(),
		Authorize: func(r *http.Request) (string, error) { return operator(r) },
	})
	if err != nil {
		panic(err)
	}
	mux.Handle("/locks/", http.StripPrefix("/locks", h))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(h.Close)
}

func ExampleHandler() {
	locks, err := rowlock.New(memstore.New(), nil) // or rowlock.Open, and its database in Options
	if err != nil {
		panic(err)
	}
	defer func() { _ = locks.Close() }()
	h, err := console.Handler(locks, console.Options{
		Authorize: func(r *http.Request) (string, error) {
			name, password, _ := r.BasicAuth() // an application has sessions
			if password != "swordfish" {
				return "", errors.New("wrong password")
			}
			return name, nil
		},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", h))

	r := httptest.NewRequest(http.MethodGet, "/locks/", nil)
	r.SetBasicAuth("ada", "swordfish")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "No key is held"))
	// Output: 200 true
}
