package table

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.SlotPasser = (*Store)(nil)

// PassSlots hands slots over, those of one limit that come together in one statement.
func (s *Store) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) ([]lease.Acquired, error) {
	var one [1]*op
	out, ops := make([]lease.Acquired, len(items)), slots(&one, len(items))
	for i := range items {
		if out[i].Err = items[i].Check(); out[i].Err == nil {
			within := &sqlstore.Within{Name: name, Generation: items[i].Generation}
			ops[i] = s.newOp(lane.Release, task{run: runHandOver, handOver: &items[i].HandOver, within: within})
		}
	}
	s.beginAll(ops)
	for i, op := range ops {
		if op == nil {
			continue
		}
		if out[i] = s.handedOver(ctx, items[i].HandOver, op); out[i].Granted {
			out[i].Generation = items[i].Generation
		}
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}
