// Segments is a flash sale of a stock that is kept in segments, so that as many buyers as there are
// segments are served at a time. A buyer takes any segment that is free. One who finds too few
// items in it borrows half of the fullest other, under the locks of both. Nothing is sold twice,
// and all that there is can be sold, although the last segment is empty when the sale begins.
//
//	go run ./examples/segments
//	go run ./examples/segments -db postgres://user:password@host/database
//
// What sells is in sell.go; the rest makes tables and counts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db       string
	items    int
	buyers   int
	segments int
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("segments", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.IntVar(&cfg.items, "items", 1000, "how many there are to sell")
	flags.IntVar(&cfg.buyers, "buyers", 1000, "how many want one to three, all at once")
	flags.IntVar(&cfg.segments, "segments", 8, "how many segments the stock is kept in")
	command.Main(flags, cfg.check, func(ctx context.Context) error { return run(ctx, cfg, os.Stdout) })
}

func (c *settings) check() error {
	if c.items < 1 || c.buyers < 1 || c.segments < 1 {
		return errors.New("-items, -buyers and -segments are at least 1")
	}
	return nil
}

func run(ctx context.Context, cfg settings, out io.Writer) (err error) {
	s, err := openShop(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	fmt.Fprintf(out, "rowlock sale on %s: %d items in %d segments, %d buyers\n",
		s.db.Product(ctx), cfg.items, cfg.segments, cfg.buyers)
	began := time.Now()
	if err := s.serveAll(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	sold, left, err := s.count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d items sold, %d left, %d loans between segments, %.0f orders a second\n",
		sold, left, s.loans.Load(), float64(cfg.buyers)/took.Seconds())
	if sold+left != int64(cfg.items) {
		return fmt.Errorf("PROMISE BROKEN: %d sold and %d left of %d", sold, left, cfg.items)
	}
	return nil
}
