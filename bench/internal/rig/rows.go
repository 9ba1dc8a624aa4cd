package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MakeFree makes a row for each of keys, which have none yet, free for so long already. It is for rows that contenders cannot make, and for
// more rows than anybody would lock and unlock to have them.
func (d *Database) MakeFree(ctx context.Context, keys []string, since time.Duration) error {
	for chunk := range slices.Chunk(keys, 2000) {
		values := strings.TrimSuffix(strings.Repeat("(?, 1, {now} + {micros}, {now} + {micros}), ", len(chunk)), ", ")
		args := make([]any, 0, 3*len(chunk))
		for _, key := range chunk {
			args = append(args, []byte(key), -since.Microseconds(), -since.Microseconds())
		}
		insert := d.SQL("INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at) VALUES " + values)
		if _, err := d.Pool.ExecContext(ctx, insert, args...); err != nil {
			return fmt.Errorf("make %d rows: %w", len(chunk), err)
		}
	}
	return nil
}
