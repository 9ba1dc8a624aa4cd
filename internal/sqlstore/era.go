package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// Eras keeps tokens growing across a failover or a restore that has lost grants. Each session that
// grants learns when it connects which history its server has, and in which era of the table that
// history is. The statements that grant have the era's start in their text, so that it costs no
// round trip, and a session that has not learned it can send none of them.
//
// A connection ends with its server, so that no session takes an old era to another one. Behind a
// pooler or a proxy it may, and there the text is an expression that fails on every server but the
// one that was asked.
type Eras struct {
	d      *Dialect
	opened Opened
	newest atomic.Int64 // that any session here has learned
	last   atomic.Int64 // that is admitted, or -1
}

// History is what a session has learned of its server.
type History struct {
	// Name differs for each start of a server, and for each restore.
	Name string
	// Newest is the start of the newest era of the table, -1 if there is none.
	Newest int64
	// Recorded is how many histories the table has, and Known is 1 if this is one of them.
	Recorded, Known int64
	// ReadOnly is 0 if the server takes writes.
	ReadOnly int64
	// Server is something that statements can compare, and that differs on any other server.
	Server string
}

// Dest returns the destinations of section era-look.
func (h *History) Dest() []any {
	return []any{&h.Name, &h.Newest, &h.Recorded, &h.Known, &h.ReadOnly, &h.Server}
}

// NewEras returns the eras of the tables that d speaks of. Close ends them.
func NewEras(d *Dialect) *Eras {
	e := &Eras{d: d}
	e.Admit(-1)
	return e
}

// Admit is the AdmitEras of a seam.EraGate.
func (e *Eras) Admit(last int64) { e.last.Store(last) }

// holds returns an error if the session must not grant in its era yet.
func (e *Eras) holds(s *Session) error {
	if last := e.last.Load(); last >= 0 && s.era > last {
		return NotSent{seam.ErrNewEra}
	}
	return nil
}

// Close is for after the last session has ended.
func (e *Eras) Close() { e.opened.Close() }

// Newest is the start of the newest era that a session has learned.
func (e *Eras) Newest() int64 { return e.newest.Load() }

// Learn has a session grant in the newest era of its server's history, and begins one if the table
// does not know the history, or has forgotten an era that another session here has seen. Nothing is
// granted before that has been committed.
func (e *Eras) Learn(ctx context.Context, s *Session) error {
	if e.d.OneHistory {
		s.EraAt(0)
		return nil
	}
	h, err := e.look(ctx, s)
	if err != nil {
		return err
	}
	for !e.knows(h) {
		if h.ReadOnly != 0 {
			return fmt.Errorf("%w: its history is new to the table, and it takes no writes", lease.ErrReadOnly)
		}
		switch h, err = e.begin(ctx, s); {
		case err == nil:
		case Judge(e.d, err).Class != Conflict || !retry.Sleep(ctx, eraPause):
			return err
		}
	}
	e.see(h.Newest)
	s.grantIn(h.Newest, e.d.EraText(s, h))
	s.holds = e.holds
	return nil
}

// After returns the function that sets up a session that grants.
func (e *Eras) After(
	setup func(context.Context, *Session) error,
) func(context.Context, *Session) error {
	return func(ctx context.Context, s *Session) error {
		if err := setup(ctx, s); err != nil {
			return err
		}
		return e.Learn(ctx, s)
	}
}

const (
	// eraPause is between two tries to begin an era while another session does.
	eraPause = 20 * time.Millisecond
	// erasKept is how many histories the table remembers. One that is forgotten begins an era again.
	erasKept = 64
)

func (e *Eras) look(ctx context.Context, s *Session) (h History, err error) {
	if h, err = e.d.History(ctx, s, &e.opened); errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: section era-look has no row", lease.ErrCorrupt)
	}
	return h, err
}

func (e *Eras) knows(h History) bool { return h.Known > 0 && h.Newest >= e.Newest() }

func (e *Eras) see(start int64) {
	for seen := e.Newest(); seen < start && !e.newest.CompareAndSwap(seen, start); {
		seen = e.Newest()
	}
}

// begin records the server's history with the next era, unless another session has, and returns
// what the table then has. An error of its commit needs no other treatment: whoever connects next
// reads what has become of it.
func (e *Eras) begin(ctx context.Context, s *Session) (h History, err error) {
	err = s.InTx(ctx, func() error {
		for _, section := range [...]string{"era-make", "era-lock"} {
			if _, err := s.Exec(ctx, e.d.Text(section)); err != nil {
				return err
			}
		}
		if h, err = e.look(ctx, s); err != nil || e.knows(h) {
			return err
		}
		if h.Newest, err = e.next(ctx, s, h); err != nil {
			return err
		}
		h.Known = 1
		if _, err := s.Exec(ctx, e.d.Text("era-write"), h.Name, h.Newest); err != nil {
			return err
		}
		return e.drop(ctx, s)
	})
	var open Unsettled
	if errors.As(err, &open) {
		err = open.Err
	}
	return h, err
}

// next returns the start of the era that the history h begins. The first history of a table has the
// tokens from 1 on.
func (e *Eras) next(ctx context.Context, s *Session, h History) (int64, error) {
	if h.Recorded == 0 && h.Newest == 0 && e.Newest() == 0 {
		return 0, nil
	}
	now, err := e.Clock(ctx, s)
	if err != nil {
		return 0, err
	}
	return nextEra(now, max(h.Newest, e.Newest()))
}

// Clock is the database's.
func (e *Eras) Clock(ctx context.Context, s *Session) (time.Time, error) {
	var now int64
	err := s.QueryRow(ctx, e.d.Text("era-clock"), nil, &now)
	return time.UnixMicro(now), err
}

// drop forgets all but the newest histories.
func (e *Eras) drop(ctx context.Context, s *Session) error {
	var oldest int64
	err := s.QueryRow(ctx, e.d.Text("era-kept"), []any{erasKept}, &oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = s.Exec(ctx, e.d.Text("era-drop"), oldest)
	}
	return err
}

// eraZero is when the numbers of eras begin.
var eraZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	// EraStep is how long two numbers of eras last, of which the odd one is for clusters. All last for
	// 79 years.
	EraStep = 10 * time.Minute
	// eraShift is the tokens that an era has room for in each µs of its step. No key is granted so
	// fast.
	eraShift = 9
	lastEra  = (lease.MaxToken>>lease.EpochShift - 2) &^ 1
)

// EraClock returns the token that every token granted before now is below, as long as the database's
// clock does not go back. It is the start of an era that begins now.
func EraClock(now time.Time) int64 {
	since := max(0, now.Sub(eraZero))
	return lease.EpochStart(int64(since/EraStep)*2) + (since%EraStep).Microseconds()<<eraShift
}

// nextEra returns the start of the era after the one that began at last: that of the clock, because
// a failover can also have forgotten the eras before it, or if the clock has gone back the next that
// is above.
func nextEra(now time.Time, last int64) (int64, error) {
	start := EraClock(now)
	if start <= last || lease.Epoch(start) > lastEra {
		start = lease.EpochStart(lease.Epoch(last)&^1 + 2)
	}
	if lease.Epoch(start) > lastEra {
		return 0, fmt.Errorf("%w: rowlock_era has no era after %d: a row there was edited, or the "+
			"database's clock was decades ahead", lease.ErrTokenExhausted, lease.Epoch(last))
	}
	return start, nil
}

const eraWord = "@era"

func grants(query string) bool { return strings.Contains(query, eraWord) }

// FillEra puts the start of an era into a statement.
func FillEra(query, start string) string { return strings.ReplaceAll(query, eraWord, start) }

// EraAt has a session grant in an era that needs not be learned, as in a cluster whose members have
// one history.
func (s *Session) EraAt(start int64) { s.grantIn(start, strconv.FormatInt(start, 10)) }

func (s *Session) grantIn(start int64, text string) {
	s.era, s.eraText, s.filled = start, text, make(map[string]string)
}

// Next returns the token that a statement of the session grants to a key which has this one.
func (s *Session) Next(token int64) int64 { return max(token, s.era) + 1 }

// held returns why a statement that grants must not be sent now.
func (s *Session) held(grants bool) error {
	if !grants || s.holds == nil {
		return nil
	}
	return s.holds(s)
}

// unprepared returns the statement of the session's job as the server gets it.
func (s *Session) unprepared() (string, error) {
	if err := s.held(grants(s.job.query)); err != nil {
		return "", err
	}
	return s.text(s.job.query)
}

// text returns a statement as the server gets it.
func (s *Session) text(query string) (string, error) {
	if text, ok := s.filled[query]; ok {
		return text, nil
	}
	text := query
	if grants(query) {
		if s.eraText == "" {
			return "", NotSent{fmt.Errorf("%w: the session has learned no era", lease.ErrConfig)}
		}
		text = FillEra(query, s.eraText)
	}
	if s.filled != nil {
		s.filled[query] = text
	}
	return text, nil
}
