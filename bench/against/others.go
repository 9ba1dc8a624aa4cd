package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// others are the contenders that keep their locks in no database.
type others struct {
	contenders []*contender
	facts      []string // of each system
	absent     []string // why a system is not there
	closers    []io.Closer

	redis, etcd string // where the durable ones are, for other processes
}

func (o *others) close() error {
	var errs []error
	for _, c := range slices.Backward(o.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func openOthers(ctx context.Context, s settings) (*others, error) {
	o := new(others)
	for _, r := range []redisSetup{
		{"redis", "ROWLOCK_TEST_REDIS", [2]byte{'r', 'y'}, true},
		{redisDefault, "ROWLOCK_TEST_REDIS_DEFAULT", [2]byte{'d', 0}, false},
	} {
		source := os.Getenv(r.variable)
		if source == "" {
			o.leaveOut(fmt.Sprintf("no %s: set %s", r.system, r.variable))
			continue
		}
		if err := o.addRedis(ctx, s, r, source); err != nil {
			return o, fmt.Errorf("%s: %w", r.system, err)
		}
	}
	if err := o.addEtcd(ctx, s); err != nil {
		return o, fmt.Errorf("etcd: %w", err)
	}
	return o, nil
}

func (o *others) leaveOut(why string) {
	fmt.Fprintln(os.Stderr, why)
	o.absent = append(o.absent, why)
}
