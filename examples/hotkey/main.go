// Hotkey shows how keys that are locked all the time move from the database to a cluster, and come home when it is quiet:
//
//	go run ./examples/hotkey
//	go run ./examples/hotkey -db postgres://user:password@host/database
//
// It starts three members of an etcd, each a process of its own, and two clients of rowlock's with a bridge each, as two processes of an
// application would have. They lock a few keys all the time and many now and then. The few move to the cluster while everything
// runs, and the database is asked less; then the member that leads is killed with -9; then the load ends. What is locked is counters in
// memory, which nothing else protects: at the end they must have what the workers have counted.
//
// What locks is in load.go and side.go; the rest starts processes, waits and draws.
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
	db    string
	short bool
	cold  int
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == memberCommand {
		os.Exit(member())
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
	os.Exit(status(ctx, run(ctx, cfg, os.Stdout)))
}

func parse(args []string, usage io.Writer) (cfg settings, err error) {
	flags := flag.NewFlagSet("hotkey", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.BoolVar(&cfg.short, "short", false, "half as long")
	flags.IntVar(&cfg.cold, "cold", 200, "how many keys are locked only now and then")
	err = flags.Parse(args)
	if err == nil && (cfg.cold < fewest || flags.NArg() > 0) {
		err = fmt.Errorf("hotkey: -cold is at least %d, or they are not cold, and there are no other arguments", fewest)
		fmt.Fprintln(usage, err)
	}
	return cfg, err
}

const fewest = 50

var errLeft = errors.New("something was left behind")

// status tells what went wrong and returns the exit status: 130 is the shell's for an interrupted program.
func status(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "hotkey: interrupted")
	}
	if err != nil && (ctx.Err() == nil || errors.Is(err, errLeft)) {
		fmt.Fprintln(os.Stderr, "hotkey:", err)
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		return 1
	}
	return 0
}
