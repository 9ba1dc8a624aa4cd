package shedlock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// ownerLength is how much of locked_by names the attempt: 32 digits and a slash.
const ownerLength = 33

func mark(o lease.Owner) string { return o.String() + "/" }

// widest is the last character that a character set has: ASCII's, of those that are not here.
var widest = map[string]rune{
	"utf8mb4": unicode.MaxRune, "UTF8": unicode.MaxRune, "utf8mb3": 0xFFFF, "utf8": 0xFFFF, "latin1": 0xFF, "LATIN1": 0xFF,
}

// lockedBy is what is written for an attempt: as much of its note as the column has room for. What its
// character set lacks is a question mark, because a note is no reason to refuse a lock.
func (s *Store) lockedBy(r lease.AcquireRequest) string {
	by := []rune(mark(r.Owner) + strings.ToValidUTF8(r.Note, "\uFFFD"))
	for i, c := range by {
		if c > s.widest {
			by[i] = '?'
		}
	}
	return string(by[:min(len(by), s.most)])
}

// row is a lock as it was read, by the database's clock.
type row struct {
	name, by  string
	left, age time.Duration // until lock_until, since locked_at
	clock     time.Duration // since 1970
}

// owner is the attempt that has locked the row. ok is false if it was no process of rowlock's.
func (r row) owner() (o lease.Owner, ok bool) {
	if len(r.by) < ownerLength || r.by[ownerLength-1] != '/' {
		return o, false
	}
	n, err := hex.Decode(o[:], []byte(r.by[:ownerLength-1]))
	return o, err == nil && n == len(o) && strings.HasPrefix(r.by, mark(o))
}

func (r row) isOf(o lease.Owner) bool { return strings.HasPrefix(r.by, mark(o)) }

func (r row) locked() time.Duration { return r.clock - r.age }

// note is what an operator may know the holder by: the host of a Java process.
func (r row) note() string {
	if _, ours := r.owner(); ours {
		return r.by[ownerLength:]
	}
	return r.by
}

// shortened keeps to what a store may return: a column can be longer than ShedLock's.
func shortened(note string) string {
	return strings.ToValidUTF8(note[:min(len(note), lease.MaxStoredNote)], "")
}

// record is the row as Inspect has it. A row does not tell a lock that was released from one that ran
// out, so that both are free. A grant to a Java process is told from the next by its time.
func (r row) record() lease.Record {
	rec := lease.Record{
		Lease: lease.Lease{Key: r.name}, Held: r.left > 0, Note: shortened(r.note()),
		Remaining: r.left, Age: r.age, Placement: lease.PlacementTable,
	}
	if o, ours := r.owner(); ours && rec.Held {
		rec.Owner = o
	} else if rec.Held {
		sum := sha256.Sum256([]byte(r.by + strconv.FormatInt(int64(r.locked()), 10)))
		copy(rec.Owner[:], sum[:])
	}
	return rec
}

func scan(from interface{ Scan(dest ...any) error }) (r row, err error) {
	var left, age, clock int64
	err = from.Scan(&r.name, &r.by, &left, &age, &clock)
	r.left, r.age, r.clock = conn.Duration(left), conn.Duration(age), conn.Duration(clock)
	return r, err
}

// look reads a row. ok is false if there is none.
func (s *Store) look(ctx context.Context, on *sql.Conn, key string) (r row, ok bool, err error) {
	r, err = scan(on.QueryRowContext(ctx, s.text.look, key))
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err == nil {
		s.clocks.note(r)
	}
	return r, err == nil, err
}
