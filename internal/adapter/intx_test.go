package adapter_test

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// passer hands over whatever it is asked for.
type passer struct{}

func (passer) PassesInTx() adapter.PassInTx {
	return func(context.Context, lease.Runner, lease.HandOver) (lease.Token, error) { return 0, nil }
}

func (passer) Strayed() {}

// The key of readers is not one reader's to give away.
func TestAReaderHandsNothingOver(t *testing.T) {
	s := &adapter.Store{TxPasser: passer{}}
	if s.PassesInTx(lease.Lease{Key: "k", Token: 1, Shared: true}) != nil {
		t.Error("handed over")
	}
}

// The token after the last one would be none that a fence could tell from another.
func TestTheLastTokenIsNotHandedOver(t *testing.T) {
	s := &adapter.Store{TxPasser: passer{}}
	for token, want := range map[lease.Token]bool{
		1: true, lease.MaxToken - 2: true, lease.MaxToken - 1: false, lease.MaxToken: false,
	} {
		if got := s.PassesInTx(lease.Lease{Key: "k", Token: token}) != nil; got != want {
			t.Errorf("token %d is handed over: %t", token, got)
		}
	}
}
