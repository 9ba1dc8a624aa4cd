package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// rawPair is the floor: a free row is taken, and made free.
func (all *hands) rawPair(ctx context.Context, worker int, key string, inside func() error) error {
	h, k, owner := all.of(worker), []byte(key), lease.NewOwner()
	err := all.retry(ctx, func() error {
		return h.use(func() error { _, err := h.raw.Take(k, owner); return err })
	})
	if err != nil {
		return fmt.Errorf("take %q: %w", key, err)
	}
	err = call(inside)
	return errors.Join(err, h.use(func() error { return h.raw.Clear(k, owner) }))
}

// naivePair is the lock that people make themselves: whoever inserts the key has it, and deletes it.
func (all *hands) naivePair(ctx context.Context, worker int, key string, inside func() error) error {
	h, k, owner := all.of(worker), []byte(key), lease.NewOwner()
	err := all.retry(ctx, func() error {
		return h.use(func() error { return h.Write("insert", k, owner[:]) })
	})
	if err != nil {
		return fmt.Errorf("insert %q: %w", key, err)
	}
	err = call(inside)
	return errors.Join(err, all.retry(ctx, func() error {
		return h.use(func() error { return h.Write("delete", k, owner[:]) })
	}))
}

// retry tries again after 5 to 15 ms as long as another has the key: sooner would be more work for the server, later more waiting. An
// INSERT and a DELETE of one key can be a deadlock on MySQL, which is nobody's having the key but no failure either.
func (all *hands) retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		again := errors.Is(err, rig.ErrNotOne) || err != nil && all.d.Dialect.Classify(err).Class == sqlstore.Conflict
		if !again || ctx.Err() != nil {
			return err
		}
		time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond))
	}
}

// ownPair locks as the server itself does, with the statement that lock names. The connection is the holder, so it is kept.
func (all *hands) ownPair(lock string) pair {
	return func(_ context.Context, worker int, key string, inside func() error) error {
		h := all.of(worker)
		h.Lock()
		defer h.Unlock()
		if err := h.say(lock, key); err != nil {
			return err
		}
		return errors.Join(call(inside), h.say("unlock", key))
	}
}

// say runs one of the server's own statements, whose answer is to be yes.
func (h *hand) say(name, key string) error {
	row, err := h.Read(name, key)
	if err != nil {
		return fmt.Errorf("%s %q: %w", name, key, err)
	}
	if row[0] != true && row[0] != int64(1) {
		return fmt.Errorf("%s %q: the answer is %v", name, key, row[0])
	}
	return nil
}

var naiveTables = map[string]string{
	"sqlite": "CREATE TABLE %s (key BLOB NOT NULL PRIMARY KEY, owner BLOB NOT NULL, made_at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
	"pgx":    "CREATE TABLE %s (key bytea PRIMARY KEY, owner bytea NOT NULL, made_at timestamptz NOT NULL)",
	"mysql":  "CREATE TABLE %s (`key` VARBINARY(255) NOT NULL PRIMARY KEY, owner BINARY(16) NOT NULL, made_at DATETIME(6) NOT NULL) ENGINE = InnoDB",
}

func naiveTable(d *rig.Database) string { return d.Prefix + "naive" }

// naiveStatements: a key that is there already is no error, which some servers would log each time.
func naiveStatements(d *rig.Database) map[string]string {
	insert, after := "INSERT INTO ", ""
	switch d.Driver {
	case "pgx":
		after = " ON CONFLICT DO NOTHING"
	case "mysql":
		insert = "INSERT IGNORE INTO "
	default:
		insert = "INSERT OR IGNORE INTO "
	}
	return map[string]string{
		"insert": d.SQL(insert + naiveTable(d) + " ({key}, owner, made_at) VALUES (?, ?, {now})" + after),
		"delete": d.SQL("DELETE FROM " + naiveTable(d) + " WHERE {key} = ? AND owner = ?"),
	}
}
