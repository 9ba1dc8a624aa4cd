package shown

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

// Unasked is said of an expired lease where nothing tells whether its row is locked.
const Unasked = "free, unless a transaction still has its row locked"

// WhoLocks says whether an open transaction has the row of an expired lease: one that a process
// fenced before it was stopped, for example.
func WhoLocks(ctx context.Context, table lease.Store, key string) string {
	in, can := adapter.As[lease.Evictor](table)
	if !can {
		return Unasked
	}
	by, err := in.Evict(ctx, key, -1)
	switch {
	case err != nil:
		return Unasked
	case len(by) == 0:
		return "free for the next caller"
	}
	locked := "its row is still locked by " + by[0].String()
	if by[0].Prepared == "" {
		locked += fmt.Sprintf(" (a call of the same user that waits ends it after its EvictAfter; rowlock release %s "+
			"--force --evict --reason TEXT ends it now)", Quote(keytext.Show(key)))
	}
	return locked
}

// Quote is an argument as a shell reads it.
func Quote(arg string) string { return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'" }
