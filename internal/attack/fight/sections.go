//go:build linux

package fight

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// sections are several callers of DoTx in each process for the same few keys: on PostgreSQL a
// COMMIT hands the key to the next of them. Others of the process want the key for themselves. An
// operator takes one key away, whose locks may be lost at any time. A bridge's locks have no DoTx.
func sections(bridge bool) []Crew {
	acts := []Weight{{"plain", 1}}
	if !bridge {
		acts = append(acts, Weight{"handed", 12})
	}
	return []Crew{
		{Name: "sections", Goroutines: 16, Acts: acts, Keys: Keys("sections/", 3)},
		{Name: "forced", Goroutines: 4, Acts: append(acts, Weight{"force", 1}), Keys: []string{check.ForcedPrefix}},
	}
}

// sectionTTL is that of locks which a killed process leaves behind: the others are to go on.
func (h *hand) sectionTTL() time.Duration {
	if h.Plan.TTL > 0 {
		return h.Plan.TTL
	}
	return 200*time.Millisecond + h.upTo(600*time.Millisecond)
}

func init() {
	// handed counts in a DoTx, of either library. Some end by an error of the function, of the COMMIT,
	// or of their ctx.
	acts["handed"] = func(ctx context.Context, h *hand) {
		s := &section{hand: h, on: databaseSQL, key: h.key(), undo: h.rng.IntN(20) == 0}
		if h.pgx != nil && h.rng.IntN(2) == 0 {
			s.on = pgxItself
		}
		s.refuse = h.Database.refuses() && h.rng.IntN(20) == 0
		most := patience
		if h.rng.IntN(12) == 0 {
			most = h.upTo(30*time.Millisecond) + 1
		}
		s.run(ctx, most, h.sectionTTL())
	}
	// plain waits behind sections, and counts in a transaction of its own.
	acts["plain"] = func(ctx context.Context, h *hand) {
		most := patience
		if h.rng.IntN(4) == 0 {
			most = h.upTo(30*time.Millisecond) + 1
		}
		got := h.lockFor(ctx, h.key(), most, h.sectionTTL())
		h.count(got, h.rng.IntN(2) == 0)
		h.unlock(got)
	}
	// force takes a key away from its holder, as an operator does.
	acts["force"] = func(ctx context.Context, h *hand) {
		Sleep(ctx, h.upTo(100*time.Millisecond))
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		key, got, sent := h.key(), new(held), Now()
		_, err := h.client.ForceRelease(ctx, key, rowlock.Force{Reason: "attack", By: h.name})
		e := h.event(history.Force, got, sent, err)
		e.Key = key
		h.record.Add(e)
	}
}

// refusedAtCommit ends the name of a write that PostgreSQL refuses at its COMMIT, as it does a
// transaction that is not serializable.
const refusedAtCommit = "!"

// refuses reports whether there are such writes.
func (d Database) refuses() bool { return d.Name == "postgres" }

// refusing makes what refuses them.
func (d Database) refusing(ctx context.Context, db *sql.DB) error {
	if !d.refuses() {
		return nil
	}
	for _, query := range []string{
		`CREATE FUNCTION {}refuse() RETURNS trigger LANGUAGE plpgsql AS
		 $$ BEGIN RAISE EXCEPTION 'attack' USING ERRCODE = 'serialization_failure'; END $$`,
		`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {}journal DEFERRABLE INITIALLY DEFERRED
		 FOR EACH ROW WHEN (NEW.op LIKE '%` + refusedAtCommit + `') EXECUTE FUNCTION {}refuse()`,
	} {
		if _, err := db.ExecContext(ctx, d.SQL(query)); err != nil {
			return err
		}
	}
	return nil
}

// endSessions has the administrator end a session of a worker now and then, most of them in a
// transaction.
func (s *slowdown) endSessions(ctx context.Context, how slow, rng *rand.Rand) {
	if s.database != "postgres" {
		return
	}
	for {
		Sleep(ctx, how.End/2+time.Duration(rng.Int64N(int64(how.End))))
		if ctx.Err() != nil {
			return
		}
		// One that has just gone, or that PgBouncer refuses, is none.
		res, err := s.db.ExecContext(ctx, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND state <> 'idle' AND query LIKE '%%%s%%' ORDER BY random() LIMIT 1) AS x`, s.prefix))
		if err != nil {
			continue
		}
		if n, _ := res.RowsAffected(); n > 0 {
			s.count(&s.ended)
		}
	}
}
