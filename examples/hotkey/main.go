// Hotkey shows how keys that are locked all the time move from the database to a cluster, and come
// home when it is quiet:
//
//	go run ./examples/hotkey
//	go run ./examples/hotkey -db postgres://user:password@host/database
//
// It starts three members of an etcd, each a process of its own, and two clients of rowlock's with
// a bridge each, as two processes of an application would have. They lock a few keys all the time
// and many now and then. The few move to the cluster while everything runs, and the database is
// asked less; then the member that leads is killed with -9; then the load ends. What is locked is
// counters in memory, which nothing else protects: at the end they must have what the workers have
// counted.
//
// What locks is in load.go and side.go; the rest starts processes, waits and draws.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

type settings struct {
	db    string
	short bool
	cold  int
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == memberCommand {
		os.Exit(member())
	}
	var cfg settings
	flags := flag.NewFlagSet("hotkey", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.BoolVar(&cfg.short, "short", false, "half as long")
	flags.IntVar(&cfg.cold, "cold", 200, "how many keys are locked only now and then")
	command.Main(flags, cfg.check, func(ctx context.Context) error { return run(ctx, cfg, os.Stdout) })
}

func (c *settings) check() error {
	if c.cold < fewest {
		return fmt.Errorf("-cold is at least %d, or they are not cold", fewest)
	}
	return nil
}

const fewest = 50
