package shared

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// event is what a child tells before and after each thing that it does. Its times are those of the
// machine, which all processes share.
type event struct {
	Did   string // "lock", "share", "write", "read", "downgrade", "unlock"
	State string // "begins", "done" or "failed"
	Token rowlock.Token
	N     int64 // read or written
	ID    int64 // of a write
	Why   string
	At    time.Time
}

func tell(e event) {
	e.At = time.Now()
	line, _ := json.Marshal(e)
	fmt.Println("child:", string(line))
}

// step does one thing and tells what came of it.
func step(e event, f func(e *event) error) error {
	e.State = "begins"
	tell(e)
	err := f(&e)
	if e.State = "done"; err != nil {
		e.State, e.Why = "failed", err.Error()
	}
	tell(e)
	return err
}

// mix locks and shares one key in turns, and reads and writes two rows under it, until the test
// closes its input.
func mix(c *servertest.Worker) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Next()
	}()
	for {
		select {
		case <-over:
			return nil
		default:
			turn(c, rand.IntN(3) == 0)
		}
	}
}

// turn is one lock, from its grant to its end.
func turn(c *servertest.Worker, alone bool) {
	ctx := context.Background()
	did, lock := "share", c.Locks.RLock
	if alone {
		did, lock = "lock", c.Locks.Lock
	}
	var l *rowlock.Lock
	err := step(event{Did: did}, func(e *event) (err error) {
		if l, err = lock(ctx, "k"); err == nil {
			e.Token = l.Token()
		}
		return err
	})
	if err != nil {
		return
	}
	for range 1 + rand.IntN(3) {
		if alone {
			_ = step(event{Did: "write", Token: l.Token(), ID: rand.Int64N(1 << 31)},
				func(e *event) error { return fenced(c, l, func(tx *sql.Tx) error { return write(c, tx, e) }) })
			continue
		}
		_ = step(event{Did: "read", Token: l.Token()},
			func(e *event) error { return fenced(c, l, func(tx *sql.Tx) error { return read2(c, tx, e) }) })
	}
	if alone && rand.IntN(2) == 0 {
		err := step(event{Did: "downgrade", Token: l.Token()},
			func(*event) error { return l.Downgrade(ctx) })
		for range rand.IntN(3) {
			if err == nil {
				_ = step(event{Did: "read", Token: l.Token()},
					func(e *event) error { return fenced(c, l, func(tx *sql.Tx) error { return read2(c, tx, e) }) })
			}
		}
	}
	_ = step(event{Did: "unlock", Token: l.Token()}, func(*event) error { return l.Unlock(ctx) })
}

// fenced runs f in a transaction after the fence, and then pauses a moment, whether or not the
// lease ends meanwhile.
func fenced(c *servertest.Worker, l *rowlock.Lock, f func(tx *sql.Tx) error) error {
	tx, err := c.DB.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(context.Background(), tx); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// write changes both rows, one after the other, and leaves a row with its number.
func write(c *servertest.Worker, tx *sql.Tx, e *event) error {
	err := c.Run(tx, `UPDATE `+c.Table+` SET n = n + 1 WHERE id = 1`)
	linger()
	if err == nil {
		err = c.Run(tx, `UPDATE `+c.Table+` SET n = n + 1 WHERE id = 2`)
	}
	if err == nil {
		e.N, err = number(c, tx, 2)
	}
	if err == nil {
		err = c.Run(tx, `INSERT INTO `+c.Table+` VALUES (?, ?)`, e.N+first, e.ID)
	}
	return err
}

// read2 reads both rows, one after the other.
func read2(c *servertest.Worker, tx *sql.Tx, e *event) error {
	one, err := number(c, tx, 1)
	linger()
	if err == nil {
		e.N, err = number(c, tx, 2)
	}
	if err == nil && one != e.N {
		tell(event{Did: "broke", Why: fmt.Sprintf("%d in one row and %d in the other", one, e.N)})
	}
	return err
}

// first is the id of the row that the first write leaves, less 1.
const first = 10

func number(c *servertest.Worker, tx *sql.Tx, id int) (n int64, err error) {
	err = tx.QueryRowContext(context.Background(),
		c.SQL(`SELECT n FROM `+c.Table+` WHERE id = ?`), id).Scan(&n)
	return n, err
}

// linger is a moment within a transaction, for another process to come between if it can.
func linger() { time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond) }
