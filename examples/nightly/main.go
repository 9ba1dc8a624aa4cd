// Nightly runs a job in one of three replicas at each tick, by the scheduler that you have:
//
//	go run ./examples/nightly -by gocron
//	go run ./examples/nightly -by robfig
//
// It kills the replica that runs the job (kill -9), and shows that another runs it at the first tick
// after the TTL. What a replica does is in replica.go. The ticks are seconds, to be seen.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/schema"
)

const (
	ttl  = 2 * time.Second
	tick = time.Second
	// slack is what a busy machine may take besides.
	slack = 5 * time.Second
)

type settings struct{ db, by, name string }

func main() {
	var cfg settings
	flags := flag.NewFlagSet("nightly", flag.ExitOnError)
	flags.StringVar(&cfg.db, "db", "", source.Usage)
	flags.StringVar(&cfg.by, "by", "gocron", "the scheduler: gocron or robfig")
	flags.StringVar(&cfg.name, "name", "", "be one replica of this `name`, until Ctrl-C")
	command.Main(flags, cfg.check, func(ctx context.Context) error {
		if cfg.name == "" {
			return watch(ctx, cfg, os.Stdout)
		}
		return replicate(ctx, cfg, os.Stdout)
	})
}

func (c *settings) check() error {
	switch {
	case c.by != "gocron" && c.by != "robfig":
		return fmt.Errorf("-by %q is no scheduler: say gocron or robfig", c.by)
	case c.name != "" && c.db == "":
		return errors.New("-name wants a -db: a replica with a database of its own has no others beside it")
	}
	return nil
}

// watch starts the replicas, kills the one that runs the job, and waits for another to run it.
func watch(ctx context.Context, cfg settings, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	db, err := source.Open(ctx, cfg.db)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema.Migrate(ctx, db.DB, db.Dialect); err != nil {
		return err
	}
	runs := make(chan string)
	replicas := make(map[string]*exec.Cmd)
	for _, name := range []string{"a", "b", "c"} {
		cmd, err := start(ctx, settings{db.Source, cfg.by, name}, runs)
		if err != nil {
			return err
		}
		replicas[name] = cmd
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	}
	victim, err := next(ctx, runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "replica %s runs the job, and is killed\n", victim)
	_ = replicas[victim].Process.Kill()
	killed := time.Now()
	second, err := next(ctx, runs)
	if err != nil {
		return err
	}
	took := time.Since(killed)
	fmt.Fprintf(out, "replica %s runs it after %.1f s; the TTL and a tick are %s\n", second, took.Seconds(), ttl+tick)
	if second == victim || took > ttl+tick+slack {
		return errors.New("that is too late, or the replica that was killed")
	}
	return nil
}

// start starts a replica, whose runs are told to a channel by its name.
func start(ctx context.Context, cfg settings, runs chan<- string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-db", cfg.db, "-by", cfg.by, "-name", cfg.name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case runs <- cfg.name:
			case <-ctx.Done():
				return
			}
		}
	}()
	return cmd, cmd.Start()
}

func next(ctx context.Context, runs <-chan string) (string, error) {
	select {
	case name := <-runs:
		return name, nil
	case <-ctx.Done():
		return "", fmt.Errorf("no replica runs the job: %w", ctx.Err())
	}
}
