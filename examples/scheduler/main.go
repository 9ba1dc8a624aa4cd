// Scheduler runs in several processes and works in one, the leader:
//
//	go run ./examples/scheduler
//	go run ./examples/scheduler -db postgres://user:password@host/database -rounds 100
//
// It starts the processes, again and again kills the leader or asks it to end, and prints how long
// it took until another led, at the end as a distribution. What a process does is in candidate.go;
// the rest starts processes and prints. With -name it is one of them, for as long as it is let.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db, prefix string
	name       string
	ttl        time.Duration
	processes  int
	rounds     int
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("scheduler", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.StringVar(&cfg.name, "name", "", "be one candidate of this `name`, until Ctrl-C; its tables stay")
	flags.StringVar(&cfg.prefix, "prefix", "scheduler_", "what the names of a candidate's tables begin with")
	flags.DurationVar(&cfg.ttl, "ttl", 2*time.Second, "how long the lease of a leader lasts unless it is renewed")
	flags.IntVar(&cfg.processes, "processes", 3, "how many candidates to start")
	flags.IntVar(&cfg.rounds, "rounds", 3, "how often to kill the leader, and how often to ask it to end")
	command.Main(flags, cfg.check, func(ctx context.Context) error {
		if cfg.name == "" {
			return watch(ctx, cfg, os.Stdout)
		}
		return stand(ctx, cfg, os.Stdout)
	})
}

func (c *settings) check() error {
	if c.processes < 2 || c.processes > 26 || c.rounds < 1 {
		return errors.New("-processes is 2 to 26, and -rounds at least 1")
	}
	if c.ttl < 500*time.Millisecond {
		return fmt.Errorf("-ttl %s is less than 500ms: a process that starts may take as long", c.ttl)
	}
	if c.name != "" && c.db == "" {
		return errors.New("-name wants a -db: a candidate with a database of its own has no others beside it")
	}
	return nil
}
