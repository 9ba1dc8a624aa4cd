package postgres

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// array is an array literal. Arrays are sent as text and cast in the statement, so that one
// prepared statement serves every batch size, with any driver and in every protocol mode. Drivers'
// own array parameters differ.
type array struct {
	b []byte
	n int // items to come, as far as is known
}

// mostGrown bounds the room that is made at once, because the first item may be the longest.
const mostGrown = 1 << 16

// next begins an item. The first shows how much room the others need: an array that grew would be
// copied again and again.
func (a *array) next() {
	switch {
	case a.b == nil:
		a.b = append(make([]byte, 0, 64), '{')
		return
	case a.n > 1:
		a.b = slices.Grow(a.b, min(a.n*(len(a.b)+1), mostGrown))
		a.n = 0
	}
	a.b = append(a.b, ',')
}

func (a *array) bytea(v []byte) {
	a.next()
	a.b = append(hex.AppendEncode(append(a.b, `"\\x`...), v), '"')
}

// owner adds the zero owner as NULL.
func (a *array) owner(o *lease.Owner) {
	if o.IsZero() {
		a.next()
		a.b = append(a.b, `NULL`...)
		return
	}
	a.bytea(o[:])
}

func (a *array) int(v int64) {
	a.next()
	a.b = strconv.AppendInt(a.b, v, 10)
}

var quoted = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

func (a *array) text(v string) {
	a.next()
	a.b = append(append(append(a.b, '"'), quoted.Replace(v)...), '"')
}

func (a *array) close() string {
	if a.b == nil {
		return "{}"
	}
	return string(append(a.b, '}'))
}

func byteaArray(keys []string) string {
	a := array{n: len(keys)}
	for _, k := range keys {
		a.bytea([]byte(k))
	}
	return a.close()
}

func renewArrays(reqs []lease.RenewRequest) []any {
	n := len(reqs)
	keys, owners, tokens, ttls := array{n: n}, array{n: n}, array{n: n}, array{n: n}
	for i := range reqs {
		keys.bytea([]byte(reqs[i].Key))
		owners.bytea(reqs[i].Owner[:])
		tokens.int(int64(reqs[i].Token))
		ttls.int(conn.Micros(reqs[i].TTL))
	}
	return []any{keys.close(), owners.close(), tokens.close(), ttls.close()}
}
