//go:build linux

package fight

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// spoils are values that rowlock does not write, and that the tables accept. Each leaves the row
// with a lease that has not run out.
var spoils = map[string][]string{
	"sqlite":   {"expires_at = 9223372036854775807", "acquired_at = -9223372036854775807", "note = CAST(x'fffe00' AS TEXT)"},
	"postgres": {"expires_at = 'infinity'", "expires_at = '294276-12-31'", "acquired_at = 'infinity'", "acquired_at = '-infinity'"},
	"mariadb":  {"expires_at = '9999-12-31 23:59:59.999999'", "acquired_at = '0000-00-00'", "note = x'fffe00'"},
	"mysql":    {"expires_at = '9999-12-31 23:59:59.999999'", "acquired_at = '0000-00-00'", "note = x'fffe00'"},
}

// corrupt is locks that nothing but a renewal touches, and rows that cannot be read in the same
// renewals and listings. A bridge has renewals of its own, and no such rows.
func corrupt(bridge bool) []Crew {
	crews := []Crew{{Name: "quiet", Goroutines: 3, Acts: []Weight{{"quiet", 1}}, Keys: []string{"quiet/"}, Own: true}}
	if !bridge {
		crews = append(crews, Crew{Name: "spoil", Goroutines: 2, Acts: []Weight{{"spoil", 1}}, Keys: []string{check.CorruptPrefix}, Own: true})
	}
	return crews
}

func init() {
	// quiet keeps a lock for the whole phase and does nothing.
	acts["quiet"] = func(ctx context.Context, h *hand) {
		got := h.lockFor(ctx, h.key(), patience, holdTTL)
		if got != nil {
			Sleep(ctx, time.Hour)
		}
		h.unlock(got)
	}
	// spoil has the row of a lock that is held and renewed become one that cannot be read.
	acts["spoil"] = func(ctx context.Context, h *hand) { h.spoil(ctx, h.key()) }
}

// spoil takes a key, and writes a bad value into its row. Another call for it must fail. The row is
// left to the renewals for as long as a lease lasts, and repaired.
func (h *hand) spoil(ctx context.Context, key string) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent := Now()
	l, err := h.client.Lock(limit, key, rowlock.TTL(holdTTL))
	if err != nil {
		return // a phase that ends, or a row that another hand of this key repairs
	}
	all := spoils[h.Database.Name]
	if err = h.write(limit, key, all[h.rng.IntN(len(all))]); err == nil {
		unlock := h.lockRow(key)
		short, cancel := context.WithTimeout(ctx, time.Second)
		var second *rowlock.Lock
		second, err = h.client.Lock(short, key)
		cancel()
		if err == nil {
			_ = second.Unlock(context.Background())
		}
		e := h.event(history.Spoiled, new(held), sent, err)
		e.Key, e.TTL, e.Token = key, holdTTL, l.Token()
		h.record.Add(e)
		Sleep(ctx, holdTTL)
		unlock()
	}
	_, _ = h.client.ForceRelease(context.Background(), key, rowlock.Force{Reason: "repair", By: h.name})
	_ = l.Unlock(context.Background())
}

// lockRow has a transaction lock the row, so that renewals find it as it is and cannot mend it. In
// SQLite that would lock all rows, and nothing is locked.
func (h *hand) lockRow(key string) (unlock func()) {
	name := map[string]string{"postgres": "key", "mariadb": "`key`", "mysql": "`key`"}[h.Database.Name]
	if name == "" {
		return func() {}
	}
	tx, err := h.db.Begin()
	if err != nil {
		return func() {}
	}
	_, _ = tx.Exec(h.Database.SQL(`SELECT token FROM {}rowlock WHERE `+name+` = ? FOR UPDATE`), []byte(key))
	return func() { _ = tx.Rollback() }
}

// write changes the row in a session that refuses no value.
func (h *hand) write(ctx context.Context, key, set string) error {
	conn, err := h.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	name := "key"
	if h.Database.Driver() == "mysql" {
		name = "`key`"
		if _, err := conn.ExecContext(ctx, "SET SESSION sql_mode = ''"); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.Background(), "SET SESSION sql_mode = DEFAULT") }()
	}
	_, err = conn.ExecContext(ctx, h.Database.SQL(`UPDATE {}rowlock SET `+set+` WHERE `+name+` = ?`), []byte(key))
	return err
}
