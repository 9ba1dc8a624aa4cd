// Command console shows the console over a made-up shop, in a database of its own: rivals for an
// order, a slow import that others wait for, an election, and two callers that wait for each other.
//
//	go run ./examples/console
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7381", "address and port; port 0 is any free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run serves the console until ctx ends.
func run(ctx context.Context, listen string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	s := &shop{ctx: ctx, db: db}
	defer s.close()
	defer end()
	if err := s.open(); err != nil {
		return err
	}
	return s.serve(listen, out)
}

// serve has no secret in its address: there is nothing to see that is not made up.
func (s *shop) serve(listen string, out io.Writer) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	h, err := console.Handler(s.clients[0], console.Options{
		DB: s.db, Dialect: sqlite.New(), Write: true,
		Authorize: func(*http.Request) (string, error) { return "you", nil },
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(s.ctx, func() { h.Close(); _ = server.Close() })()
	fmt.Fprintf(out, "http://%s/ (Ctrl-C ends it)\n", l.Addr())
	if err := server.Serve(l); s.ctx.Err() == nil {
		return err
	}
	return nil
}
