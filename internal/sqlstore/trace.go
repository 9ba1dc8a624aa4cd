package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Traces is what databases do in different ways with the trace.
type Traces interface {
	Texts
	// SetupTrace makes the settings of a session that is for the trace alone: every wait is bounded
	// by the server too.
	SetupTrace(ctx context.Context, s *conn.Session) error
	// WriteTrace adds rows, all or none.
	WriteTrace(ctx context.Context, s *conn.Session, rows []TraceRow) error
	// TraceBefore encodes the time and the id that rows must precede, for the sections that list.
	TraceBefore(micros, id int64) []any
}

// TraceRow is a row of the trace to write.
type TraceRow struct {
	Age    time.Duration
	ID     int64
	Key    string
	Event  string
	Token  lease.Token
	Owner  lease.Owner
	Note   string
	Number int64 // µs, or how many events were dropped
	Detail string
}

// traceRow is an event as a row.
func traceRow(e *lease.TraceEvent, now time.Time) TraceRow {
	r := TraceRow{
		Age: max(0, now.Sub(e.At)), ID: e.ID, Key: e.Key, Event: e.Kind.String(), Token: e.Token,
		Owner: e.Owner, Number: e.Took.Microseconds(), Detail: lease.CleanDetail(e.Detail),
	}
	if e.Identity != "" || e.Note != "" {
		r.Note = lease.StoredNote(e.Identity, e.Note)
	}
	if e.Kind == lease.EventDropped {
		r.Number = e.Dropped
	}
	return r
}

// WriteTrace adds events, all or none.
func WriteTrace(ctx context.Context, s *conn.Session, d Traces, events []lease.TraceEvent) error {
	rows := make([]TraceRow, len(events))
	now := time.Now() // the last moment before they are sent, and one for all: they keep their order
	for i := range events {
		rows[i] = traceRow(&events[i], now)
	}
	return d.WriteTrace(ctx, s, rows)
}

// ReadTrace lists events, latest first.
func ReadTrace(ctx context.Context, s *conn.Session, d Traces, f lease.TraceFilter) (
	all []lease.TraceEvent, err error,
) {
	before, id := int64(253370764800000000), int64(0) // the year 9999
	if !f.Before.At.IsZero() {
		before, id = f.Before.At.UnixMicro(), f.Before.ID
	}
	// The prefix is no lease.Range: events without a key have none, and a database may read all of a
	// range from the index of the keys, and sort it, for a page of the latest.
	section, args := "trace-list", []any{len(f.Prefix), []byte(f.Prefix)}
	if f.Key != "" || f.NoKey {
		section, args = "trace-list-key", []any{[]byte(f.Key)}
	}
	args = append(append(args, d.TraceBefore(before, id)...), f.Limit)
	err = s.Query(ctx, d.Text(section), args, func(row conn.Columns) error {
		e, err := scanTrace(row)
		all = append(all, e) // of a bad event, what could be read
		return conn.UnlessBad(err)
	})
	return all, err
}

func scanTrace(row conn.Columns) (e lease.TraceEvent, err error) {
	var at, number int64
	var key, event, owner, note, detail []byte
	err = row.Scan(&at, &e.ID, &key, &event, &e.Token, &owner, &note, &number, &detail)
	if err == nil && len(owner) != len(e.Owner) {
		err = fmt.Errorf("%w: an event of %q has the owner %x", lease.ErrCorrupt, key, owner)
	}
	copy(e.Owner[:], owner)
	e.Kind, e.Key, e.At = lease.KindOf(string(event)), string(key), time.UnixMicro(at).UTC()
	e.Identity, e.Note = lease.SplitNote(string(note))
	e.Detail = string(detail)
	switch e.Kind {
	case lease.EventDropped:
		e.Dropped = number
	case 0: // of a later version
		e.Detail = cmp.Or(e.Detail, string(event))
	default:
		e.Took = conn.Duration(number)
	}
	return e, err
}

// SweepTrace removes the oldest of the events that are older than the retention.
func SweepTrace(
	ctx context.Context, s *conn.Session, d Traces, retention time.Duration, most int,
) (int64, error) {
	return s.Change(ctx, d.Text("trace-sweep"), conn.Micros(retention), most)
}

// TraceList encodes rows as a JSON array of [age in µs, id, key, event, token, owner, note, number,
// detail]; see HexList.
func TraceList(rows []TraceRow) string {
	b := startList(len(rows), 300)
	for i := range rows {
		b = append(appendTrace(append(b, '['), &rows[i]), `],`...)
	}
	return endList(b)
}
