package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// Main runs a program until it is done or interrupted, and exits.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// MainWithWorkers is Main for a program that also starts itself as its workers.
func MainWithWorkers(name string, run, work func(ctx context.Context, args []string) error) {
	if len(os.Args) > 1 && os.Args[1] == WorkerCommand {
		run = work
	}
	Main(name, run)
}

// Measure has measure look at one database after the other, each with tables made for it, and shows how far it is.
// Beside an error it returns the results of the databases before.
func Measure[R any](ctx context.Context, found []Kind, steps int, measure func(ctx context.Context, d *Database, p *Progress) (R, error)) ([]R, error) {
	p := NewProgress(steps)
	defer p.Done()
	var all []R
	for _, k := range found {
		r, err := measureOne(ctx, k, p, measure)
		if err != nil {
			return all, fmt.Errorf("%s: %w", k.Name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func measureOne[R any](ctx context.Context, k Kind, p *Progress, measure func(context.Context, *Database, *Progress) (R, error)) (r R, err error) {
	d, err := Open(ctx, k)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return measure(ctx, d, p)
}
