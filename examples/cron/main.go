// Cron runs a job every two seconds, in as many processes as there are, once:
//
//	go run ./examples/cron
//	go run ./examples/cron -db postgres://user:password@host/database
//
// It starts three workers, each with a clock and a schedule of its own, and kills one in the middle of a run to show that another
// picks the tick up. What a worker does is in tick.go; the rest starts processes and prints. With -name it is a worker itself, for as
// long as it is let, in as many terminals or on as many machines as you like.
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
	db, name  string
	schedule  string
	takes     time.Duration
	processes int
	ticks     int
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
	run := watch
	if cfg.name != "" {
		run = work
	}
	if err := run(ctx, cfg, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func parse(args []string, usage io.Writer) (cfg settings, err error) {
	flags := flag.NewFlagSet("cron", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.StringVar(&cfg.name, "name", "", "be one worker of this `name`")
	flags.StringVar(&cfg.schedule, "schedule", "*/2 * * * * *", "when to run: second, minute, hour, day, month, weekday")
	flags.DurationVar(&cfg.takes, "takes", 300*time.Millisecond, "how long the job takes")
	flags.IntVar(&cfg.processes, "processes", 3, "how many workers to start")
	flags.IntVar(&cfg.ticks, "ticks", 5, "how many ticks to show")
	err = flags.Parse(args)
	if err == nil && (cfg.processes < 2 || cfg.ticks < 1 || cfg.takes < 0 || flags.NArg() > 0) {
		err = errors.New("cron: -processes is at least 2, -ticks at least 1, -takes not negative, and there are no other arguments")
		fmt.Fprintln(usage, err)
	}
	return cfg, err
}
