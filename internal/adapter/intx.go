package adapter

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// PassInTx hands a lease over in its holder's transaction, as HandOver does in one of its own. It
// returns the next owner's token, which is granted if the transaction is committed. Its errors are
// those of ReleaseTx.
type PassInTx func(ctx context.Context, tx lease.Runner, h lease.HandOver) (lease.Token, error)

// TxPasser is a lease.TxReleaser whose leases a holder's transaction can hand over. Package lease
// has no such ability: a wrapper that did not know it would be passed over.
type TxPasser interface {
	// PassesInTx returns nil if no transaction may hand a lease over now.
	PassesInTx() PassInTx
	// Strayed is called if such a transaction was at another server than the store's.
	Strayed()
}

// PassesInTx returns what hands l over in its holder's transaction, or nil.
func (s *Store) PassesInTx(l lease.Lease) PassInTx {
	if s.TxPasser == nil || l.Shared || l.Token >= lease.MaxToken-1 {
		return nil
	}
	return s.TxPasser.PassesInTx()
}
