package table

import (
	"cmp"
	"hash/maphash"
	"sync"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// mostExpected is how many keys' tokens are remembered, at least.
	mostExpected = 1 << 14
	// surprisedFor is how many batches expect nothing after one whose expectations were mostly
	// wrong: of keys that other processes are granted too.
	surprisedFor = 8
)

// expected remembers which token a key's row had when this process was last granted the key. Where
// a batch would have to read the rows first, it can leave that out. What has changed since makes
// the statement change nothing, so that an expectation that is wrong costs time only.
type expected struct {
	mu        sync.Mutex
	seed      maphash.Seed
	now, then map[uint64]lease.Token // see last; by a hash of the key, which is right nearly always
	surprised int
}

// grants notes the tokens of what was granted.
func (x *expected) grants(ops ...*op) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, op := range ops {
		if a := op.Body.acquired; a.Granted && (op.Kind == conn.Acquire || op.Body.handOver != nil) {
			x.put(op.Body.key(op.Kind), a.Token)
		}
	}
}

func (x *expected) put(key string, token lease.Token) {
	if x.now == nil || len(x.now) >= mostExpected {
		if x.now == nil {
			x.seed = maphash.MakeSeed()
		}
		x.now, x.then = make(map[uint64]lease.Token), x.now
	}
	at := maphash.String(x.seed, key)
	if last := x.last(at); last != 0 && token != max(last, -last)+1 {
		token = -token // another process had the key in between, and may again: read it the next time
	}
	x.now[at] = token
}

// last is the token of the last grant, negative if it is not to be expected, or 0.
func (x *expected) last(at uint64) lease.Token {
	return cmp.Or(x.now[at], x.then[at])
}

// tell adds to the acquires of a batch what their rows probably are.
func (x *expected) tell(changes []sqlstore.Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.now == nil:
		return
	case x.surprised > 0:
		x.surprised--
		return
	}
	for i := range changes {
		if c := &changes[i]; c.Acquires() {
			c.Expects = max(0, x.last(maphash.String(x.seed, c.From.Key)))
		}
	}
}

// learn finds out whether to expect anything of the next batches.
func (x *expected) learn(changes []sqlstore.Change, applied []sqlstore.Applied) {
	right, wrong := 0, 0
	for i := range applied {
		switch expects := changes[i].Expects; {
		case expects == 0:
		case applied[i].Outcome == sqlstore.Done && applied[i].Token == expects+1:
			right++
		default:
			wrong++
		}
	}
	if wrong > right {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.surprised = surprisedFor
	}
}
