// Orders is an order service with only a database, as a monolith is that has been there for years:
// its own migrations, which one server at a time runs, accounts, handlers that write in a
// transaction, and POST /orders made safe to repeat.
//
//	go run ./examples/orders
//	curl -i http://127.0.0.1:8080/orders -H 'Authorization: Bearer ada-secret' \
//	    -H 'Idempotency-Key: 7f3a' -d '{"customer":"Ada","lines":[{"sku":"tea","quantity":2}]}'
//
// Send the same request again, as often as you like, also while you kill the server with -9 and
// start it anew: there is one order, and the answer is the same. Send it with bob-secret: Bob gets
// an order of his own, and never sees Ada's. They are kept in orders.db, or where -db says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

func main() {
	flags := flag.NewFlagSet("orders", flag.ExitOnError)
	db := flags.String("db", "orders.db", source.Forms)
	addr := flags.String("addr", "127.0.0.1:8080", "`host:port` to listen on; port 0 is any that is free")
	command.Main(flags, func() error { return nil }, func(ctx context.Context) error { return run(ctx, *db, *addr) })
}

func run(ctx context.Context, name, addr string) (err error) {
	db, err := source.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrate(ctx, db); err != nil {
		return err
	}
	requests, err := once.New(db.DB.DB, db.Dialect, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, requests.Close()) }()

	repeatable, err := oncehttp.New(requests, &oncehttp.Config{Tenant: accountOf})
	if err != nil {
		return err
	}
	s := &shop{db: db.DB}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", repeatable.Wrap(http.HandlerFunc(s.order)))
	mux.HandleFunc("GET /orders/{id}", s.show)
	return serve(ctx, addr, s.authenticate(mux), db.Shown())
}

// newServer bounds each part of an exchange. Without ReadTimeout a client that sends half a body
// and then nothing keeps a connection, a goroutine and its buffers for as long as it likes.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // from the header on: an order may wait for its own first copy
		IdleTimeout:       2 * time.Minute,
	}
}

// serve answers until ctx ends, and then ends what it has begun.
func serve(ctx context.Context, addr string, h http.Handler, kept string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := newServer(h)
	fmt.Printf("listening on http://%s\norders are kept in %s\n", l.Addr(), kept)
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(ctx)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
