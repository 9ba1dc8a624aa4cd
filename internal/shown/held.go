package shown

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Order is that of a page.
type Order string

// Orders of pages.
const (
	ByKey    Order = "key"
	ByAge    Order = "age"    // the longest held first
	ByExpiry Order = "expiry" // the first to expire first; shared keys last
)

// Held asks for a page of keys that are held.
type Held struct {
	Prefix string
	// Holder is the identity of the holder, or "" for any. It has a page in the order of keys alone.
	Holder string
	Order  Order
	// AfterKey and AfterTime are those of the last row of the page before. AfterTime has no meaning
	// in the order of keys.
	AfterKey  string
	AfterTime int64
	Limit     int
}

// Row is a key that is held.
type Row struct {
	lease.Record
	// Waiting is how many tickets and processes wait for it.
	Waiting int
	// Time is what the row is ordered by: see Held.AfterTime.
	Time int64
}

// Page returns the rows of a page, and the last row that was read if there may be more. It leaves
// rowlock's own keys out, unless the prefix is theirs, and shared keys without a member: a page may
// have fewer rows than its limit, and more may follow.
func (t *Tables) Page(ctx context.Context, h Held) (page []Row, last *Row, err error) {
	args := t.interval(h)
	all, err := query(ctx, t, "by-"+string(h.Order), args, func(r *sql.Rows) (Row, error) {
		return t.row(r, h.Order)
	})
	if err != nil {
		return nil, nil, err
	}
	sortRows(all, h.Order) // a database need not keep the order of rows that it was told to find first
	if len(all) > h.Limit {
		all = all[:h.Limit]
		end := all[len(all)-1]
		last = &end
	}
	for _, r := range all {
		own := strings.HasPrefix(r.Key, lease.Reserved) && !strings.HasPrefix(h.Prefix, lease.Reserved)
		// The statement finds all whose identity begins so.
		if r.Held && !own && (h.Holder == "" || r.Identity() == h.Holder) {
			page = append(page, r)
		}
	}
	return page, last, nil
}

func sortRows(rows []Row, order Order) {
	slices.SortFunc(rows, func(a, b Row) int {
		if order == ByKey {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Key, b.Key))
	})
}

func (t *Tables) interval(h Held) []any {
	above, to := t.bounds(h.Prefix)
	after := []byte(t.space + h.AfterKey)
	if h.AfterKey == "" {
		after = []byte{}
	}
	if h.Order != ByKey {
		return []any{above, to, h.AfterTime, h.AfterTime, after, h.Limit + 1}
	}
	if bytes.Compare(after, above) > 0 {
		above = after
	}
	return []any{above, to, h.Holder, h.Limit + 1}
}

func (t *Tables) row(rows *sql.Rows, order Order) (r Row, err error) {
	var key, owner []byte
	var acquired, expires, remaining, age, shared int64
	err = conn.ScanSQL(rows, &key, &owner, &r.Token, &r.Note, &r.Placement, &acquired, &expires, &remaining, &age,
		&r.Members, &shared, &r.Waiting)
	if err == nil && len(owner) != len(r.Owner) {
		err = fmt.Errorf("%w: key %q has an owner of %d bytes", lease.ErrCorrupt, key, len(owner))
	}
	if err != nil && !conn.IsBad(err) {
		return r, err
	}
	r.Key, r.Age, r.Held, r.Err = t.own(key), micros(age), true, err
	r.Remaining, r.Time = micros(remaining), acquired
	copy(r.Owner[:], owner)
	if order == ByExpiry {
		r.Time = expires
	}
	if _, group := lease.ReaderGroupToken(r.Owner); group && r.Err == nil {
		r.Shared, r.Held, r.Remaining = true, r.Members > 0, max(0, micros(shared))
	} else {
		r.Members = 0
	}
	return r, nil
}

// Member is one holder of a shared key.
type Member struct {
	Owner          lease.Owner
	Identity, Note string
	Remaining, Age time.Duration
}

// Members returns who holds a shared key, the oldest first.
func (t *Tables) Members(ctx context.Context, key string, limit int) ([]Member, error) {
	args := []any{[]byte(t.space + key), limit}
	return query(ctx, t, "members", args, func(r *sql.Rows) (m Member, err error) {
		var owner []byte
		var note string
		var remaining, age int64
		err = conn.UnlessBad(conn.ScanSQL(r, &owner, &note, &remaining, &age))
		copy(m.Owner[:], owner)
		m.Identity, m.Note = lease.SplitNote(note)
		m.Remaining, m.Age = micros(remaining), micros(age)
		return m, err
	})
}

// Placement names where a key is, in words.
func Placement(n int) string {
	switch n {
	case lease.PlacementTable:
		return "table"
	case lease.PlacementTransaction:
		return "transaction"
	}
	return "cluster " + strconv.Itoa(n)
}
