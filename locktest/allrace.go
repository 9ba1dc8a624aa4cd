package locktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// allRace is bank transfers: 16 clerks lock two or three of 8 accounts at once, sometimes a single
// one, and move money that only the locks protect. A refused clerk tries again; if all were refused
// at once, none would finish.
func allRace(r *rig) {
	const accounts, clerks, fortune = 8, 16, 1000
	var balance [accounts]atomic.Int64
	for i := range balance {
		balance[i].Store(fortune)
	}
	r.allAcquirer(r.here)
	both := []lease.Store{r.here, r.there()}
	together(clerks, func(clerk int) {
		rng := rand.New(rand.NewPCG(1, uint64(clerk)))
		for range r.h.scale(24) {
			set := rng.Perm(accounts)[:1+rng.IntN(3)]
			reqs, answers := r.untilAll(both[clerk%2], set)
			if answers == nil {
				return // it has failed the test
			}
			transfer(balance[:], set, int64(rng.IntN(fortune)))
			r.giveBack(both[clerk%2], grantedOf(reqs, answers))
		}
	})
	sum := int64(0)
	for i := range balance {
		sum += balance[i].Load()
	}
	if sum != accounts*fortune {
		r.Errorf("%d was transferred into %d: two had an account at once", int64(accounts*fortune), sum)
	}
}

// transfer reads and writes with a pause between, in which the write of a second holder would be
// lost.
func transfer(balance []atomic.Int64, set []int, amount int64) {
	read := make([]int64, len(set))
	for i, account := range set {
		read[i] = balance[account].Load()
	}
	time.Sleep(time.Microsecond)
	for i, account := range set {
		switch i {
		case 0:
			read[i] -= amount * int64(len(set)-1)
		default:
			read[i] += amount
		}
		balance[account].Store(read[i])
	}
}

// untilAll asks until the set is granted. It fails the test, and returns nil, when that does not
// come.
func (r *rig) untilAll(s lease.Store, set []int) ([]lease.AcquireRequest, []lease.Acquired) {
	keys := make([]string, len(set))
	for i, account := range set {
		keys[i] = fmt.Sprint("account", account)
	}
	all, _ := adapter.As[lease.AllAcquirer](s)
	for r.ctx.Err() == nil && !r.Failed() {
		reqs := requests(keys...)
		answers, err := all.AcquireAll(r.ctx, reqs)
		if err != nil {
			if passes(err) {
				continue
			}
			r.Errorf("acquire all of %q, racing: %v", keys, err)
			return nil, nil
		}
		granted, wrong := whole(reqs, answers)
		if wrong != "" {
			r.Errorf("%s: %q, %+v", wrong, keys, answers)
			return nil, nil
		}
		if granted {
			return reqs, answers
		}
		time.Sleep(rand.N(time.Millisecond))
	}
	if !r.Failed() {
		r.Errorf("%q were not granted within %v", keys, r.h.limit())
	}
	return nil, nil
}

// allBeside has three owners take and release single keys of a large set, the last in key order.
// Each change may fall between the moment at which the set is seen to be free and the moment at
// which its last key is taken.
func allBeside(r *rig) {
	r.allAcquirer(r.here)
	keys := make([]string, r.h.most(200))
	for i := range keys {
		keys[i] = fmt.Sprintf("k%03d", i)
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.h.load()/2)
	defer cancel()
	there := r.there()
	var granted, refused atomic.Int64
	together(4, func(i int) {
		for ctx.Err() == nil {
			if i == 0 {
				r.oneSet(keys, &granted, &refused)
				continue
			}
			r.flicker(there, keys[len(keys)-1-rand.IntN(16)])
			time.Sleep(2 * time.Millisecond)
		}
	})
	r.Logf("%d sets were granted, %d refused", granted.Load(), refused.Load())
}

func (r *rig) oneSet(keys []string, granted, refused *atomic.Int64) {
	reqs := requests(keys...)
	all, _ := adapter.As[lease.AllAcquirer](r.here)
	answers, err := all.AcquireAll(r.ctx, reqs)
	if err != nil {
		if !passes(err) {
			r.Errorf("acquire all: %v", err)
		}
		return
	}
	ok, wrong := whole(reqs, answers)
	switch {
	case wrong != "":
		r.Errorf("%s: %+v", wrong, answers)
	case ok:
		granted.Add(1)
		r.giveBack(r.here, grantedOf(reqs, answers))
	default:
		refused.Add(1)
	}
}

// flicker takes a key for a moment if it is free. Others run in that moment, on one processor too.
func (r *rig) flicker(s lease.Store, key string) {
	q := request(key, lease.NewOwner())
	a, err := acquireOne(r.ctx, s, q)
	if err == nil && a.Granted {
		runtime.Gosched()
		_, err = releaseOne(r.ctx, s, lease.Lease{Key: key, Owner: q.Owner, Token: a.Token})
	}
	if err != nil && !passes(err) {
		r.Errorf("take and release %q: %v", key, err)
	}
}
