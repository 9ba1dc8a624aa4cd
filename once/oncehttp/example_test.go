package oncehttp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
	"github.com/rowlockdb/rowlock/schema"
)

// A client that had no answer sends its order again with the same Idempotency-Key. Another account
// that sends the same key and body has an order of its own.
func Example() {
	dir, err := os.MkdirTemp("", "oncehttp")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := schema.Migrate(context.Background(), db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)`); err != nil {
		log.Fatal(err)
	}
	o, err := once.New(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()
	accounts := map[string]string{"Bearer 6fd0": "ada", "Bearer a3e1": "bob"} // by their secrets
	account := func(r *http.Request) string { return accounts[r.Header.Get("Authorization")] }
	h, err := oncehttp.New(o, &oncehttp.Config{Tenant: account})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.Handle("POST /orders", h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made, err := oncehttp.Tx(r.Context()).ExecContext(r.Context(),
			`INSERT INTO orders (item) VALUES (?)`, r.FormValue("item"))
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolled back, not kept
			return
		}
		id, _ := made.LastInsertId()
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", id)
	})))

	for _, c := range []struct{ secret, key string }{
		{"6fd0", `"req-7"`}, {"6fd0", `"req-7"`}, {"a3e1", `"req-7"`}, {"6fd0", ""}, {"none", `"req-7"`},
	} {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("item=book"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+c.secret)
		if c.key != "" {
			r.Header.Set("Idempotency-Key", c.key)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		switch {
		case w.Code >= 400:
			fmt.Println(w.Code, w.Header().Get("Content-Type"))
		case w.Header().Get("Idempotent-Replayed") != "":
			fmt.Println(w.Code, w.Body, "again")
		default:
			fmt.Println(w.Code, w.Body)
		}
	}
	// Output:
	// 201 order 1
	// 201 order 1 again
	// 201 order 2
	// 400 application/problem+json
	// 403 application/problem+json
}
