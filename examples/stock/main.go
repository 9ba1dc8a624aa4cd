// Stock is a flash sale: 2,000 items and more than twice as many buyers, all at once, and each way there is to keep one item from being
// sold twice, side by side.
//
//	go run ./examples/stock
//	go run ./examples/stock -db postgres://user:password@host/database
//
// What buys is in ways.go; the rest makes tables, counts and draws.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	cfg, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stock:", err)
		os.Exit(1)
	}
}

func parse(args []string, usage io.Writer) (cfg settings, err error) {
	flags := flag.NewFlagSet("stock", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.IntVar(&cfg.items, "items", 2000, "how many there are to sell")
	flags.IntVar(&cfg.buyers, "buyers", 5000, "how many want one, all at once")
	flags.IntVar(&cfg.tills, "tills", 16, "connections that sell")
	flags.IntVar(&cfg.stripes, "stripes", 8, "how many shelves the striped ways spread the items over")
	err = flags.Parse(args)
	if err == nil && (cfg.items < 1 || cfg.buyers < 1 || cfg.tills < 1 || cfg.stripes < 1 || flags.NArg() > 0) {
		err = errors.New("stock: -items, -buyers, -tills and -stripes are at least 1, and there are no other arguments")
		fmt.Fprintln(usage, err)
	}
	return cfg, err
}

// run sells everything once in each way.
func run(ctx context.Context, cfg settings, out io.Writer) (err error) {
	s, err := openShop(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	fmt.Fprintf(out, "rowlock flash sale on %s: %d items, %d buyers\n\n", s.db.Product(ctx), cfg.items, cfg.buyers)
	var all []result
	for _, way := range s.ways() {
		r, err := s.sell(ctx, way)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, r)
	}
	chart(out, all)
	for _, r := range all {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}
