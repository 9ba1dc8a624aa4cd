package memstore_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/memstore"
)

var harness = locktest.Harness{
	Open: func(testing.TB) lease.Store { return memstore.New() },
	Expire: func(_ testing.TB, s lease.Store, key string) {
		s.(*memstore.Store).Expire(key)
	},
	SetToken: func(_ testing.TB, s lease.Store, key string, token lease.Token) {
		s.(*memstore.Store).SetToken(key, token)
	},
	ExpireTicket: func(_ testing.TB, s lease.Store, key string, waiter lease.Owner) {
		s.(*memstore.Store).ExpireTicket(key, waiter)
	},
	AgeTicket: func(_ testing.TB, s lease.Store, key string, waiter lease.Owner, by time.Duration) {
		s.(*memstore.Store).AgeTicket(key, waiter, by)
	},
}

func TestConformance(t *testing.T) { locktest.Run(t, harness) }
func TestRandom(t *testing.T)      { locktest.RunRandom(t, harness, 0) }
