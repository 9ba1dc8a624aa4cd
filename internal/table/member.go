package table

import (
	"cmp"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// forever is what remains of a row that a reader group holds: it has no end.
const forever = time.Duration(1<<63 - 1)

func isGroups(a lease.Acquired) bool {
	return a.Err == nil && !a.Granted && a.Holder.Remaining == forever
}

// member is what a statement says of one: the token of its reader group, or 0 if it was not
// changed.
type member struct {
	token     lease.Token
	group     lease.Owner
	remaining time.Duration
	err       error

	stays     bool           // others do, so that the reader group goes on
	last      bool           // none does
	awaited   bool           // the key, which another process waits for
	refused   lease.Acquired // what is in the way of a request that was not let in
	uncertain bool           // an earlier try had an unknown outcome
}

// told is the answer, or only the error.
func (m member) told(uncertain bool, err error) member {
	if err != nil {
		return member{err: err}
	}
	m.uncertain = uncertain
	return m
}

// id names a member of any reader group of a key.
type id struct {
	key   string
	owner lease.Owner
}

// memberOrder is the order in which all statements lock members.
func memberOrder(a, b lease.RenewRequest) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Token, b.Token),
		slices.Compare(a.Owner[:], b.Owner[:]))
}

func answers(reqs []lease.RenewRequest, found map[id]member, uncertain bool, err error) []member {
	out := make([]member, len(reqs))
	for i, r := range reqs {
		out[i] = found[id{r.Key, r.Owner}].told(uncertain, err)
	}
	return out
}
