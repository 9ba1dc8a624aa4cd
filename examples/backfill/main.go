// Backfill changes a million rows in place: each price becomes cents. Done twice or left out, a
// row is wrong for ever, and nothing in it says which. Three workers share the job; twenty times
// one of them is killed, and another goes on where it was:
//
//	go run ./examples/backfill
//	go run ./examples/backfill -db postgres://user:password@host/database
//
// The rows are cut into shards. A worker holds one shard at a time and goes through it in batches.
// A batch's rows and the position behind it are one transaction under the lock's fence. What a
// worker does is in work.go; the rest makes rows, starts and kills workers, and counts.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db, prefix string
	worker     bool
	rows       int64
	batch      int64
	shards     int
	workers    int
	kills      int
}

func main() {
	var cfg settings
	flags := flag.NewFlagSet("backfill", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.Int64Var(&cfg.rows, "rows", 1_000_000, "how many rows there are")
	flags.Int64Var(&cfg.batch, "batch", 1000, "how many of them are one transaction")
	flags.IntVar(&cfg.shards, "shards", 24, "how many parts the rows are cut into")
	flags.IntVar(&cfg.workers, "workers", 3, "how many processes work")
	flags.IntVar(&cfg.kills, "kills", 20, "how often one of them is killed (SIGKILL)")
	flags.BoolVar(&cfg.worker, "worker", false, "be a worker on the tables that -prefix names")
	flags.StringVar(&cfg.prefix, "prefix", "", "what the names of a worker's tables begin with")
	command.Main(flags, cfg.check, func(ctx context.Context) error {
		if cfg.worker {
			return work(ctx, cfg)
		}
		return run(ctx, cfg, os.Stdout)
	})
}

func (c *settings) check() error {
	switch {
	case c.rows < 1 || c.batch < 1 || c.shards < 1 || c.workers < 1 || c.kills < 0:
		return errors.New("-rows, -batch, -shards and -workers are at least 1, and -kills is not negative")
	case int64(c.shards) > c.rows:
		return errors.New("-shards is at most -rows: a shard without a row is none")
	case c.worker && (c.db == "" || c.prefix == ""):
		return errors.New("-worker wants the -db and the -prefix of the program that starts it")
	}
	return nil
}
