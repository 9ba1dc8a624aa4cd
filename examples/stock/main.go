// Stock is a flash sale: 2,000 items and more than twice as many buyers, all at once, and each way
// there is to keep one item from being sold twice, side by side.
//
//	go run ./examples/stock
//	go run ./examples/stock -db postgres://user:password@host/database
//
// What buys is in ways.go; the rest makes tables, counts and draws. On a terminal the chart grows
// while the sale goes on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db      string
	items   int
	buyers  int
	tills   int
	stripes int
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("stock", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.IntVar(&cfg.items, "items", 2000, "how many there are to sell")
	flags.IntVar(&cfg.buyers, "buyers", 5000, "how many want one, all at once")
	flags.IntVar(&cfg.tills, "tills", 16, "connections that sell")
	flags.IntVar(&cfg.stripes, "stripes", 8, "how many shelves the striped ways spread the items over")
	command.Main(flags, cfg.check, func(ctx context.Context) error { return run(ctx, cfg, os.Stdout) })
}

func (c *settings) check() error {
	if c.items < 1 || c.buyers < 1 || c.tills < 1 || c.stripes < 1 {
		return errors.New("-items, -buyers, -tills and -stripes are at least 1")
	}
	return nil
}

// run sells everything once in each way.
func run(ctx context.Context, cfg settings, out io.Writer) (err error) {
	s, err := openShop(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	fmt.Fprintf(out, "rowlock flash sale on %s: %d items, %d buyers\n\n", s.db.Product(ctx), cfg.items, cfg.buyers)
	board := newBoard(out, cfg)
	for _, way := range s.ways() {
		done := board.watch(way.name)
		r, err := s.sell(ctx, way, &board.served)
		done()
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		board.add(r)
	}
	return board.end()
}
