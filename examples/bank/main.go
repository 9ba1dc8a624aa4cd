// Bank is a service of several replicas that have only a database: transfers between accounts that
// can be repeated, and a job that pays interest every night, once.
//
//	go run ./examples/bank
//	curl -i http://127.0.0.1:8080/accounts/ada/transfers/bob -H 'Idempotency-Key: 7f3a' -d '{"cents":250}'
//	curl http://127.0.0.1:8080/accounts/ada
//
// Start more replicas, each with another -addr, and kill them and the server with -9 as you like: no
// cent is lost or made, and no account gets its interest twice. What moves money is in bank.go; the
// nightly job is in night.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

type settings struct {
	db, addr   string
	ttl, night time.Duration
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("bank", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "bank.db", source.Forms)
	flags.StringVar(&cfg.addr, "addr", "127.0.0.1:8080", "`host:port` to listen on; port 0 is any that is free")
	flags.DurationVar(&cfg.ttl, "ttl", 5*time.Second, "after how long the others go on where a replica was killed")
	flags.DurationVar(&cfg.night, "night", 10*time.Second, "how long a day of the bank is")
	command.Main(flags, cfg.check, func(ctx context.Context) error { return run(ctx, cfg) })
}

func (c *settings) check() error {
	if c.night < time.Second {
		return errors.New("-night is at least 1s: days are numbered by it")
	}
	return nil
}

// run is one replica.
func run(ctx context.Context, cfg settings) (err error) {
	db, err := source.Open(ctx, cfg.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &bank{db: db}
	if err := b.migrate(ctx); err != nil {
		return err
	}
	if b.locks, err = rowlock.Open(db, db.Dialect, &rowlock.Config{TTL: cfg.ttl}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.locks.Close()) }()
	requests, err := once.New(db.DB.DB, db.Dialect, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, requests.Close()) }()
	// An API with accounts would name the account that it has authenticated, as examples/orders does.
	repeatable, err := oncehttp.New(requests, &oncehttp.Config{Tenant: oncehttp.SharedKeys, Lock: b.lockBoth})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{from}/transfers/{to}", repeatable.Wrap(http.HandlerFunc(b.transfer)))
	mux.HandleFunc("GET /accounts/{name}", b.show)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return b.nights(ctx, cfg.night) })
	all.Go(func() error { return serve(ctx, cfg.addr, mux) })
	return all.Wait()
}

// serve answers until ctx ends, and then ends what it has begun.
func serve(ctx context.Context, addr string, h http.Handler) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	fmt.Printf("listening on http://%s\n", l.Addr())
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(ctx)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
