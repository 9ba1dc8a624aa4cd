package section

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Sections of every kind by callers of up to three clients, whose connections, the transactions' as
// well, break at any operation: none loses another's update, one that returned nil was done once
// and wholly, one that failed was not done, and one of unknown outcome was done wholly or not. An
// operator takes keys away meanwhile, and a client is closed.
// ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestSectionsInBadWeather(t *testing.T) {
	servertest.InBadWeather(t, 1, func(t *testing.T, s *servertest.Storm) { newTally(t, s).play() })
}

// tally counts the sections of each key, by reading and writing, and lists them.
type tally struct {
	*testing.T
	storm *servertest.Storm
	n     string // a table with a number for each key
	done  string // a table with a row for each key of a section
	keys  []string
	mu    sync.Mutex
	ended map[string]ending
}

// ending is how a section ended.
type ending struct {
	keys int
	err  error
}

func newTally(t *testing.T, e *servertest.Storm) *tally {
	prefix := e.Dialect.Names().Prefix
	y := &tally{
		T: t, storm: e, n: prefix + "tally", done: prefix + "done",
		keys: []string{"a", "b", "c"}, ended: make(map[string]ending),
	}
	e.Exec(t, `CREATE TABLE `+y.n+` (k VARCHAR(10) NOT NULL PRIMARY KEY, n INT NOT NULL)`)
	e.Exec(t, `CREATE TABLE `+y.done+` (id VARCHAR(20) NOT NULL, k VARCHAR(10) NOT NULL, n INT NOT NULL)`)
	for _, key := range y.keys {
		e.Exec(t, `INSERT INTO `+y.n+` VALUES ('`+key+`', 0)`)
	}
	t.Cleanup(func() {
		e.Exec(t, `DROP TABLE `+y.n)
		e.Exec(t, `DROP TABLE `+y.done)
	})
	return y
}

// lasts is for how long callers work.
const lasts = 5 * time.Second

func (y *tally) play() {
	type process struct {
		*rowlock.Client
		db *sql.DB
	}
	var processes []process
	fair := y.storm.IntN(2) == 0
	for range 1 + y.storm.IntN(3) {
		db := y.storm.Exposed(y.T)
		processes = append(processes, process{servertest.Open(y.T, db, y.storm.Env, func(c *rowlock.Config) {
			c.Fair, c.TTL = fair, 6*time.Second
			if y.storm.IntN(2) == 0 {
				servertest.WithSweep(100 * time.Millisecond)(c)
			}
		}), db})
	}
	y.storm.Turn(true)
	var callers sync.WaitGroup
	if y.storm.IntN(2) == 0 {
		rng := y.storm.Branch()
		callers.Go(func() { y.operate(rng) })
	}
	if y.storm.IntN(4) == 0 {
		after := time.Duration(y.storm.Int64N(int64(lasts)))
		callers.Go(func() {
			time.Sleep(after)
			_ = processes[0].Close()
		})
	}
	for _, p := range processes {
		for range 1 + y.storm.IntN(3) {
			rng := y.storm.Branch()
			callers.Go(func() {
				for end := time.Now().Add(lasts); time.Now().Before(end); {
					y.visit(p.Client, p.db, rng)
				}
			})
		}
	}
	callers.Wait()
	y.storm.Turn(false)
	y.judge()
}

// operate takes keys from those who hold them, whatever they do.
func (y *tally) operate(rng *rand.Rand) {
	c := servertest.Open(y.T, y.storm.DB, y.storm.Env, nil)
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.Int64N(int64(700 * time.Millisecond))))
		_, err := c.ForceRelease(y.Context(), y.keys[rng.IntN(len(y.keys))], rowlock.Force{
			By: "an operator", Reason: "a test", Evict: rng.IntN(2) == 0,
		})
		if err != nil && !errors.Is(err, rowlock.ErrNotHeld) && !errors.Is(err, rowlock.ErrBusy) {
			y.Error(err)
		}
	}
}

// visit runs a section of some kind.
func (y *tally) visit(c *rowlock.Client, db *sql.DB, rng *rand.Rand) {
	keys := slices.Clone(y.keys)
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+rng.IntN(2)]
	ctx, cancel := context.WithTimeout(y.Context(), time.Duration(rng.Int64N(int64(5*time.Second))))
	defer cancel()
	switch rng.IntN(5) {
	case 0:
		s := y.section(keys[:1], rng)
		y.note(s, c.DoTx(ctx, keys[0], s.run))
	case 1:
		s := y.section(keys, rng)
		y.note(s, c.DoAllTx(ctx, keys, s.run))
	case 2:
		l, err := c.Lock(ctx, keys[0])
		if err != nil {
			time.Sleep(time.Millisecond)
			return
		}
		for range 1 + rng.IntN(3) {
			s := y.section(keys[:1], rng)
			y.note(s, l.DoTx(ctx, s.run))
		}
		_ = l.Unlock(ctx)
	default:
		l, err := c.Lock(ctx, keys[0])
		if err != nil {
			time.Sleep(time.Millisecond)
			return
		}
		s := y.section(keys[:1], rng)
		y.note(s, byHand(ctx, db, l, s, rng.IntN(2) == 0))
		_ = l.Unlock(ctx)
	}
}

var errCommit = fmt.Errorf("%w: the COMMIT has failed", rowlock.ErrUnknown)

// byHand is a section in a transaction of the caller's own.
func byHand(ctx context.Context, db *sql.DB, l *rowlock.Lock, s *section, unlocks bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	if err := s.run(ctx, tx); err != nil {
		return err
	}
	if unlocks {
		if err := l.UnlockTx(ctx, tx); err != nil {
			return err
		}
	}
	if tx.Commit() != nil {
		return errCommit
	}
	return nil
}

// section is what one of them writes.
type section struct {
	*tally
	id    string
	keys  []string
	pause time.Duration
	ran   bool
}

func (y *tally) section(keys []string, rng *rand.Rand) *section {
	return &section{
		tally: y, id: strconv.FormatUint(rng.Uint64(), 36), keys: keys,
		pause: time.Duration(rng.Int64N(int64(30 * time.Millisecond))),
	}
}

// run adds one to each of the section's numbers.
func (s *section) run(ctx context.Context, tx *sql.Tx) error {
	s.ran = true
	for _, key := range s.keys {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT n FROM `+s.n+` WHERE k = '`+key+`'`).Scan(&n); err != nil {
			return err
		}
		time.Sleep(s.pause)
		for _, write := range []string{
			`UPDATE ` + s.n + ` SET n = ` + strconv.Itoa(n+1) + ` WHERE k = '` + key + `'`,
			`INSERT INTO ` + s.done + ` VALUES ('` + s.id + `', '` + key + `', ` + strconv.Itoa(n+1) + `)`,
		} {
			if _, err := tx.ExecContext(ctx, write); err != nil {
				return err
			}
		}
	}
	return nil
}

func (y *tally) note(s *section, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if s.ran || !errors.Is(err, rowlock.ErrClosed) { // a closed client refuses as often as it is asked
		y.ended[s.id] = ending{len(s.keys), err}
	}
}

// judge compares what was told with what was done.
func (y *tally) judge() {
	done, unknown := 0, 0
	for id, how := range y.ended {
		var rows int
		y.number(`SELECT COUNT(*) FROM `+y.done+` WHERE id = '`+id+`'`, &rows)
		wholly := rows == how.keys
		switch {
		case how.err == nil:
			done++
			if !wholly {
				y.Errorf("%s was told done, and %d of %d rows are there", id, rows, how.keys)
			}
		case errors.Is(how.err, rowlock.ErrUnknown):
			unknown++
			if rows != 0 && !wholly {
				y.Errorf("%s is unknown, and %d of %d rows are there", id, rows, how.keys)
			}
		case rows != 0:
			y.Errorf("%s has failed, and %d of %d rows are there: %v", id, rows, how.keys, how.err)
		}
	}
	for _, key := range y.keys {
		var n, rows, different int
		y.number(`SELECT n FROM `+y.n+` WHERE k = '`+key+`'`, &n)
		y.number(`SELECT COUNT(*) FROM `+y.done+` WHERE k = '`+key+`'`, &rows)
		y.number(`SELECT COUNT(DISTINCT n) FROM `+y.done+` WHERE k = '`+key+`'`, &different)
		if n != rows || rows != different {
			y.Errorf("%q: %d sections have counted to %d, with %d numbers", key, rows, n, different)
		}
	}
	y.Logf("%d sections: %d done, %d unknown", len(y.ended), done, unknown)
}

func (y *tally) number(query string, n *int) {
	if err := y.storm.DB.QueryRowContext(y.Context(), query).Scan(n); err != nil {
		y.Fatal(err)
	}
}
