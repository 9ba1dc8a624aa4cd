package mysql

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// The sessions that hear what is announced to all are a tree: a session announces to the first
// fanOut, and each of them to the fanOut below it.
const fanOut, everyone = 4, 4 + 16 + 64

// mostWoken bounds the processes that one Wake notifies, each in a statement.
const mostWoken = 8

// addresses are the names under which a session may listen. They are identifiers that need no
// quotes, of 64 characters at most.
func addresses(channel string, process lease.Owner) (names []string) {
	if !process.IsZero() {
		return []string{channel + "_" + strings.ToUpper(hex.EncodeToString(process[:8]))}
	}
	for n := range everyone {
		names = append(names, fmt.Sprintf("%s_%d", channel, n))
	}
	return names
}

// below are the names of the sessions that the one at place wakes; -1 is the root.
func below(names []string, place int) []string {
	first := fanOut * (place + 1)
	return names[min(first, len(names)):min(first+fanOut, len(names))]
}

func list(names []string) string {
	b, _ := json.Marshal(names)
	return string(b)
}

// Announce wakes the sessions next to the root. They hear that any key may be free, because
// KILL QUERY carries no message.
func (d *database) Announce(ctx context.Context, s *conn.Session, channel string, _ []string) error {
	names, err := d.listeners(ctx, s, below(addresses(channel, lease.Owner{}), -1))
	if err != nil {
		return err
	}
	return d.ring(ctx, s, names)
}

// listeners returns those of names under which a session listens.
func (d *database) listeners(ctx context.Context, s *conn.Session, names []string) (
	listen []string, err error,
) {
	if len(names) == 0 {
		return nil, nil
	}
	err = s.Query(ctx, d.Text("listeners"), []any{list(names)}, func(r conn.Columns) error {
		var n int64
		err := r.Scan(&n)
		if err == nil && n >= 1 && n <= int64(len(names)) {
			listen = append(listen, names[n-1])
		}
		return err
	})
	return listen, err
}

// Wake chooses the processes in one statement and wakes each in another.
func (d *database) Wake(
	ctx context.Context, s *conn.Session, channel string, process lease.Owner, keys []string,
) error {
	var names []string
	all := false
	seen := make(map[lease.Owner]bool)
	from := conn.Bytes(process)
	err := s.Query(ctx, d.Text("wake"), []any{channel, from, channel, from, d.List(keys)},
		func(r conn.Columns) error {
			var chosen lease.Owner
			var waiter []byte
			err := r.Scan(&waiter)
			copy(chosen[:], waiter)
			all = all || chosen.IsZero()
			if !chosen.IsZero() && !seen[chosen] && len(names) < mostWoken {
				seen[chosen] = true
				names = append(names, addresses(channel, chosen)...)
			}
			return err
		})
	if err == nil {
		err = d.ring(ctx, s, names)
	}
	if err == nil && all {
		err = d.Announce(ctx, s, channel, keys)
	}
	return err
}

// ring ends the wait of each session. The server looks the session up by its lock in the statement
// that kills, so that no number can be stale. 1094: the session has ended. 1095: it is another
// user's, and its process polls. 1317: this session was woken itself.
func (d *database) ring(ctx context.Context, s *conn.Session, names []string) error {
	var refused error
	for _, name := range names {
		_, err := s.Conn().ExecContext(ctx, `KILL QUERY IS_USED_LOCK('`+name+`')`)
		switch {
		case err == nil, isNumber(err, 1094):
		case isNumber(err, 1095):
			refused = err
		default:
			return err
		}
	}
	if refused == nil || d.refused.Swap(true) { // told once
		return nil
	}
	return fmt.Errorf("%w: this user may not wake the sessions of others, which poll: "+
		"connect all processes as one user: %w", lease.ErrUnsupported, refused)
}

// relay passes an announcement on to the sessions below. It reads their names at every beat, and
// then also moves up to a free name, so that no session is cut off for long.
func (e *listener) relay(ctx context.Context, woken bool) error {
	if woken {
		if err := e.d.ring(ctx, e.s, e.children); isNumber(err, 1317) {
			e.deaf = true // woken meanwhile; the children below hear the next one
		}
	}
	if time.Since(e.looked) < beat {
		return nil
	}
	e.looked = time.Now()
	if err := e.climb(ctx); err != nil {
		return err
	}
	children, err := e.d.listeners(ctx, e.s, below(e.names, e.place))
	if isNumber(err, 1317) { // woken, and not in its wait
		e.deaf, e.looked = true, time.Time{}
		return nil
	}
	e.children = children
	return err
}

// climb takes a name nearer to the root if one is free, and gives its own up.
func (e *listener) climb(ctx context.Context) error {
	if e.place == 0 {
		return nil
	}
	was := e.names[e.place]
	if moved, err := e.take(ctx, e.names[:e.place]); err != nil || !moved {
		return err
	}
	var released int64
	return e.s.QueryRow(ctx, e.d.Text("unlisten"), []any{was}, &released)
}
