package wlock_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// unlike is what a store over WLock does not promise, and why. Topics whose ability it lacks are
// skipped by themselves: fences, sharing, queues, limits, all of which need what is stored beside a
// lock, and WLock stores nothing but an owner, a token and an expiry.
var unlike = map[string]string{
	"release/a released row keeps its token": "a release removes the record: GET then is LOCK_DELETED",

	"keys/an empty key and one of 256 bytes are refused":                   "it lists all rows; see TestKeysThatServersCannotEchoAreRefused",
	"inspect/rows are listed page by page in the byte order of their keys": "no message lists keys",
	"inspect/a prefix is bytes, not a pattern":                             "no message lists keys",
	"inspect/only rows whose lease is alive are listed as held":            "no message lists keys, and GET tells no expiry",
	"inspect/a listing without a limit ends at 1000 rows":                  "no message lists keys",

	"time/a lease keeps the fraction of its second":         "see TestALeaseEndsInTime, without a machine's pauses",
	"time/a lease ends by itself, and not before its time":  "an answer that takes longer than the TTL is an error",
	"hints/a listener hears what another process announces": "servers tell of releases, and of nothing else",
	"hints/an announcement is of all its keys":              "servers tell of releases, and of nothing else",
}

func harness() locktest.Harness {
	clusters := make(map[lease.Store]*wlocktest.Cluster)
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			c := newDouble(tb)
			s := open(tb, patient(config(c)))
			clusters[s] = c
			return s
		},
		// Another is missing: an owner belongs to one process, which alone knows the first of its
		// tokens. TestTwoProcesses has the rest.
		Expire: func(_ testing.TB, s lease.Store, key string) {
			s.(*wlock.Store).EndAll(key)
			clusters[s].Expire(wire(key))
		},
		SetToken: func(_ testing.TB, s lease.Store, _ string, token lease.Token) {
			clusters[s].SetToken(int64(token))
		},
		Steady:  true,
		Load:    200 * time.Millisecond,
		Without: slices.Sorted(maps.Keys(unlike)),
	}
}

func TestConformance(t *testing.T) { locktest.Run(t, harness()) }
