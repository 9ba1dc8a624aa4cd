// Quickstart shows in a few seconds what a lock in the database is for, with real processes on a real database:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -db postgres://user:password@host/database
//	go run ./examples/quickstart -db mysql://user:password@host:3306/database
//
// What locks is in count.go and deposit.go; everything else starts processes, stops them and prints.
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
	"time"

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
	cfg, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // piped into head, we must still come to the clean-up
	context.AfterFunc(ctx, stop)   // a second Ctrl-C need not wait for the clean-up
	os.Exit(status(ctx, quickstart(ctx, cfg, newStory(os.Stdout))))
}

func parse(args []string, usage io.Writer) (cfg settings, err error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.IntVar(&cfg.processes, "processes", 4, "how many processes count together")
	flags.Int64Var(&cfg.count, "count", 200, "how far they count")
	flags.BoolVar(&cfg.keep, "keep", false, "keep the tables, to look at them afterwards")
	err = flags.Parse(args)
	if err == nil && (cfg.processes < 1 || cfg.count < 1 || flags.NArg() > 0) {
		err = errors.New("quickstart: -processes and -count are at least 1, and there are no other arguments")
		fmt.Fprintln(usage, err)
	}
	return cfg, err
}

// status tells what went wrong and returns the exit status: 130 is the shell's for an interrupted program.
func status(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "quickstart: interrupted")
	}
	if err != nil && (ctx.Err() == nil || errors.Is(err, errLeft)) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		return 1
	}
	return 0
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
