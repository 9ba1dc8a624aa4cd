package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
)

// nights pays interest once a day, until ctx ends. All replicas wake up together. One pays, and the
// others wait: if it is killed they go on where it was.
func (b *bank) nights(ctx context.Context, night time.Duration) error {
	for {
		now := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(now.Truncate(night).Add(night).Sub(now)):
		}
		day := time.Now().UnixNano() / int64(night)
		err := b.locks.Do(ctx, "night", func(ctx context.Context, _ *rowlock.Lock) error { return b.pay(ctx, day) })
		if err != nil && ctx.Err() == nil {
			slog.Error("the night's job will be taken up tomorrow, or by another replica", "error", err)
		}
	}
}

// pay pays every account that has not been paid for the day. That only one replica does so saves
// work; that no account is paid twice does not depend on it.
func (b *bank) pay(ctx context.Context, day int64) error {
	var unpaid []string
	err := b.db.SelectContext(ctx, &unpaid,
		b.db.Rebind(`SELECT name FROM accounts WHERE name <> ? AND paid < ? ORDER BY name`), house, day)
	if err != nil {
		return err
	}
	for _, account := range unpaid {
		err := b.payOne(ctx, account, day)
		if errors.Is(err, rowlock.ErrUnknown) {
			err = b.payOne(ctx, account, day) // which finds out whether that COMMIT was done
		}
		if err != nil {
			return fmt.Errorf("pay %s: %w", account, err)
		}
	}
	return nil
}

// payOne pays a thousandth of the balance. The day is in the same transaction as the money.
func (b *bank) payOne(ctx context.Context, account string, day int64) error {
	both := []string{key(account), key(house)}
	return b.locks.DoAllTx(ctx, both, func(ctx context.Context, tx *sql.Tx) error {
		var cents, paid int64
		err := tx.QueryRowContext(ctx, b.db.Rebind(`SELECT cents, paid FROM accounts WHERE name = ?`), account).Scan(&cents, &paid)
		if err != nil || paid >= day {
			return err
		}
		if _, err = tx.ExecContext(ctx, b.db.Rebind(`UPDATE accounts SET paid = ? WHERE name = ?`), day, account); err != nil {
			return err
		}
		return b.move(ctx, tx, house, account, cents/1000, fmt.Sprintf("interest of day %d", day))
	})
}
