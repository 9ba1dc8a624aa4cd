package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Force is a forced release in a transaction of a session.
type Force struct {
	lease.ForceRequest
	On   *conn.Session
	Text Texts
}

// Release ends the lease that the row names and records it. found says that the row named the lease
// to end, or that an earlier copy of the request ended it.
func (r Force) Release(ctx context.Context) (f lease.Forced, found bool, err error) {
	was, note, err := r.lock(ctx)
	if err != nil {
		return f, false, err
	}
	// Under the lock of the row, so that an earlier copy has ended or comes later.
	if f, found, err = r.find(ctx); err == nil && found {
		_, err = r.exec(ctx, "force-confirm", []byte(r.Key))
	}
	if err != nil || found {
		return f, found, err
	}
	if was.Owner.IsZero() || r.Token != 0 && r.Token != was.Token {
		return lease.Forced{Lease: was, Note: note}, false, nil
	}
	if err := r.end(ctx, was); err != nil {
		return f, false, err
	}
	return r.record(ctx, was, note)
}

// Repair frees a key whose row cannot be read, and records it as Release does. The row is was, as
// far as it could be read; token is above all that the key was granted with.
func (r Force) Repair(ctx context.Context, was lease.Record, token lease.Token) (
	f lease.Forced, found bool, err error,
) {
	var key []byte
	err = r.On.QueryRow(ctx, r.Text.Text("force-lock-bad"), []any{[]byte(r.Key)}, &key)
	if err == nil {
		f, found, err = r.find(ctx) // under the lock of the row, as Release does
	}
	if err != nil || found {
		return f, found, err
	}
	n, err := r.On.Change(ctx, r.Text.Text("force-repair"), token, []byte(r.Key))
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: %q", lease.ErrMoved, r.Key)
	}
	if err != nil {
		return f, false, err
	}
	if _, shared := lease.ReaderGroupToken(was.Owner); shared {
		if _, err = r.exec(ctx, "force-members", []byte(r.Key), conn.Bytes(was.Owner)); err != nil {
			return f, false, err
		}
	}
	was.Token = max(0, was.Token)
	return r.record(ctx, was.Lease, strings.ToValidUTF8(was.Note, "?"))
}

// record writes the record, and removes the tickets that would keep the key from all others.
func (r Force) record(ctx context.Context, was lease.Lease, note string) (
	f lease.Forced, found bool, err error,
) {
	if _, err := r.exec(ctx, "force-tickets", []byte(r.Key)); err != nil {
		return f, false, err
	}
	_, err = r.exec(ctx, "force-record", conn.Bytes(r.ID), r.By, r.Reason, r.Token,
		conn.Bytes(was.Owner), was.Token, note, []byte(r.Key))
	if err != nil {
		return f, false, err
	}
	return r.find(ctx)
}

func (r Force) exec(ctx context.Context, section string, args ...any) (sql.Result, error) {
	return r.On.Exec(ctx, r.Text.Text(section), args...)
}

// lock returns what the row names: no owner if the key is free.
func (r Force) lock(ctx context.Context) (l lease.Lease, note string, err error) {
	var owner, text []byte
	l.Key = r.Key
	err = r.On.QueryRow(ctx, r.Text.Text("force-lock"), []any{[]byte(r.Key)}, &owner, &l.Token, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return l, "", nil
	}
	if err == nil && len(owner) != len(l.Owner) {
		err = fmt.Errorf("%w: an owner is called %x", lease.ErrCorrupt, owner)
	}
	copy(l.Owner[:], owner)
	return l, string(text), err
}

func (r Force) end(ctx context.Context, was lease.Lease) error {
	key := []byte(was.Key)
	n, err := r.On.Change(ctx, r.Text.Text("force-end"), r.On.Next(was.Token), key, conn.Bytes(was.Owner), was.Token)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("%w: force release of %q changed %d rows", lease.ErrCorrupt, was.Key, n)
	}
	if _, shared := lease.ReaderGroupToken(was.Owner); !shared {
		return nil
	}
	_, err = r.exec(ctx, "force-members", key, conn.Bytes(was.Owner))
	return err
}

// find returns the record of the request, if an earlier copy of it has written one.
func (r Force) find(ctx context.Context) (f lease.Forced, found bool, err error) {
	err = r.On.Query(ctx, r.Text.Text("force-find"), []any{[]byte(r.Key), conn.Bytes(r.ID)},
		func(row conn.Columns) (err error) {
			f, err = scanForced(row)
			found = err == nil
			return err
		})
	return f, found, err
}

// ForceReleases lists records, latest first.
func ForceReleases(ctx context.Context, s *conn.Session, d Texts, f lease.ForcedFilter) (
	all []lease.Forced, err error,
) {
	last, before := f.Last, int64(253370764800000000) // the year 9999
	if last.At.IsZero() {
		last = lease.Forced{At: f.Before}
	}
	if !last.At.IsZero() {
		before = last.At.UnixMicro()
	}
	section, args := "force-list", []any{len(f.Prefix), []byte(f.Prefix)}
	if f.Key != "" {
		section, args = "force-list-key", []any{[]byte(f.Key)}
	}
	args = append(args, before, last.Raised, conn.Bytes(last.ID), f.Limit)
	err = s.Query(ctx, d.Text(section), args, func(row conn.Columns) error {
		one, err := scanForced(row)
		all = append(all, one) // of a bad record, what could be read
		return conn.UnlessBad(err)
	})
	return all, err
}

func scanForced(row conn.Columns) (f lease.Forced, err error) {
	var at int64
	var key, id, by, reason, owner, note []byte
	err = row.Scan(&key, &at, &id, &by, &reason, &f.Token, &owner, &f.Lease.Token, &note, &f.Raised)
	if err == nil && (len(id) != len(f.ID) || len(owner) != len(f.Lease.Owner)) {
		err = fmt.Errorf("%w: the record of a forced release of %q", lease.ErrCorrupt, key)
	}
	copy(f.ID[:], id)
	copy(f.Lease.Owner[:], owner)
	f.Key, f.Lease.Key, f.At = string(key), string(key), time.UnixMicro(at).UTC()
	f.By, f.Session = actors(string(by))
	f.Reason, f.Note = string(reason), string(note)
	return f, err
}

// actors returns the operator that a request has named, and behind the last tab the user of the
// session, which the statement has added. The first is a claim, and may have tabs.
func actors(actor string) (by, session string) {
	if at := strings.LastIndexByte(actor, '\t'); at >= 0 {
		return actor[:at], actor[at+1:]
	}
	return actor, ""
}
