// Cron runs a job every two seconds, in as many processes as there are, once:
//
//	go run ./examples/cron
//	go run ./examples/cron -db postgres://user:password@host/database
//
// It starts three workers, each with a clock and a schedule of its own, and kills one in the middle
// of a run to show that another picks the tick up. What a worker does is in tick.go; the rest
// starts processes and prints. With -name it is a worker itself, for as long as it is let, in as
// many terminals or on as many machines as you like.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/adhocore/gronx"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db, prefix string
	name       string
	schedule   string
	takes      time.Duration
	processes  int
	ticks      int
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("cron", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.StringVar(&cfg.name, "name", "", "be one worker of this `name`, until Ctrl-C; its tables stay")
	flags.StringVar(&cfg.prefix, "prefix", "cron_", "what the names of a worker's tables begin with")
	flags.StringVar(&cfg.schedule, "schedule", "*/2 * * * * *", "when to run: second, minute, hour, day, month, weekday")
	flags.DurationVar(&cfg.takes, "takes", 300*time.Millisecond, "how long the job takes")
	flags.IntVar(&cfg.processes, "processes", 3, "how many workers to start")
	flags.IntVar(&cfg.ticks, "ticks", 5, "how many ticks to show")
	command.Main(flags, cfg.check, func(ctx context.Context) error {
		if cfg.name == "" {
			return watch(ctx, cfg, os.Stdout)
		}
		if err := work(ctx, cfg, os.Stdout); ctx.Err() == nil {
			return err
		}
		return nil // a worker is to run until it is interrupted
	})
}

func (c *settings) check() error {
	if c.processes < 2 || c.processes > len(names) || c.ticks < 1 || c.takes < 0 {
		return fmt.Errorf("-processes is 2 to %d, -ticks at least 1, and -takes not negative", len(names))
	}
	if !gronx.New().IsValid(c.schedule) {
		return fmt.Errorf("-schedule %q is none; for example \"*/2 * * * * *\" is every two seconds, \"0 30 4 * * *\" at half past four", c.schedule)
	}
	if c.name != "" && c.db == "" {
		return errors.New("-name wants a -db: a worker with a database of its own has no others beside it")
	}
	return nil
}
