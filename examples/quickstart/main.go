// Quickstart shows in a few seconds what a lock in the database is for, with real processes on a
// real database:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -db postgres://user:password@host/database
//	go run ./examples/quickstart -db mysql://user:password@host:3306/database
//
// What locks is in count.go and deposit.go; everything else starts processes, stops them and
// prints.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db        string
	processes int
	count     int64
	keep      bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerCommand {
		os.Exit(work(os.Stdin, os.Stdout))
	}
	var cfg settings
	flags := flag.NewFlagSet("quickstart", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.IntVar(&cfg.processes, "processes", 4, "how many processes count together")
	flags.Int64Var(&cfg.count, "count", 200, "how far they count")
	flags.BoolVar(&cfg.keep, "keep", false, "keep the tables in -db, to look at them afterwards")
	command.Main(flags, cfg.check, func(ctx context.Context) error { return quickstart(ctx, cfg, newStory(os.Stdout)) })
}

func (c *settings) check() error {
	if c.processes < 1 || c.count < 1 {
		return errors.New("-processes and -count are at least 1")
	}
	if c.keep && c.db == "" {
		return errors.New("-keep wants a -db: a database in a temporary folder is removed with it")
	}
	return nil
}

func quickstart(ctx context.Context, cfg settings, s *story) (err error) {
	began := time.Now()
	place, err := prepare(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.cleanUp(ctx, cfg.keep, s)) }()
	s.title("rowlock quickstart on " + place.Product(ctx))
	if err := countTogether(ctx, place, cfg, s); err != nil {
		return err
	}
	if err := stopAndWake(ctx, place, s); err != nil {
		return err
	}
	return s.end(time.Since(began))
}
