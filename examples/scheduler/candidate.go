package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// candidate is one process.
type candidate struct {
	name string
	db   *source.DB
	plan string // the table that the leader writes
	out  *json.Encoder
	deaf context.CancelCauseFunc // called when the reader of our output is gone
}

// event is what a candidate prints, a line each.
type event struct {
	Name string        `json:"name"`
	What string        `json:"what"` // stands, leads, ends, fenced, or failed
	Term rowlock.Token `json:"term,omitempty"`
	Why  string        `json:"why,omitempty"`
	At   time.Time     `json:"at"`
}

// stand is a candidate until ctx ends.
func stand(ctx context.Context, cfg settings, out io.Writer) (err error) {
	c := &candidate{name: cfg.name, plan: cfg.prefix + planTable, out: json.NewEncoder(out)}
	ctx, c.deaf = context.WithCancelCause(ctx)
	defer c.deaf(nil)
	if c.db, err = source.Open(ctx, cfg.db, dialect.Prefix(cfg.prefix)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.db.Close()) }()
	locks, err := rowlock.Open(c.db, c.db.Dialect, &rowlock.Config{TTL: cfg.ttl, Identity: c.name})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close()) }()
	c.tell("stands", 0, "")
	return election.Run(ctx, locks, "scheduler", c.lead, election.OnError(func(err error) {
		c.tell("failed", 0, err.Error())
	}))
}

// lead plans something twenty times a second, until it is told to end.
func (c *candidate) lead(ctx context.Context, l *rowlock.Lock) error {
	c.tell("leads", l.Token(), "")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			err := c.write(ctx, l)
			if errors.Is(err, rowlock.ErrFenced) {
				c.tell("fenced", l.Token(), err.Error())
			}
			if err != nil && ctx.Err() == nil {
				return err // the candidate resigns, rests, and stands again
			}
		case <-ctx.Done():
			c.tell("ends", l.Token(), context.Cause(ctx).Error())
			return ctx.Err()
		}
	}
}

// write plans something in this term, unless there is a later one.
func (c *candidate) write(ctx context.Context, l *rowlock.Lock) error {
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, c.db.Rebind(`INSERT INTO `+c.plan+` (n, term)
			SELECT COALESCE(MAX(n), 0) + 1, ? FROM `+c.plan), l.Token())
		return err
	})
}

// planTable is our own table's name, behind the prefix.
const planTable = "plan"

func (c *candidate) tell(what string, term rowlock.Token, why string) {
	if err := c.out.Encode(event{c.name, what, term, why, time.Now()}); err != nil {
		c.deaf(err)
	}
}
