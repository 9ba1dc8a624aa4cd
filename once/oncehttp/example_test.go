package oncehttp_test

import (
	"context"
	"database/sql"
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

// A client that had no answer sends its order again with the same Idempotency-Key.
func Example() {
	dir, err := os.MkdirTemp("", "oncehttp")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
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
	h, err := oncehttp.New(o, nil)
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

	for _, key := range []string{`"req-7"`, `"req-7"`, ""} {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("item=book"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotent-Replayed"), w.Header().Get("Content-Type"))
	}
	// Output:
	// 201  text/plain; charset=utf-8
	// 201 true text/plain; charset=utf-8
	// 400  application/problem+json
}
