package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// array is an array parameter, so that one prepared statement serves every batch size. A wire sends
// it as it is, which neither side writes digits for. Drivers' own array parameters differ: they get
// a literal (Value), with any driver and in every protocol mode.
type array struct {
	items []byte // each behind its length, which is -1 for NULL, in the server's binary format
	n     int
	nulls uint32 // 1 if there are any
	of    uint32 // the type of the items
}

const null = -1

// newArray has room for n items: one that grew would be copied again and again.
func newArray(n int) *array { return &array{items: make([]byte, 0, 32*n)} }

func (a *array) next(of uint32, size int) {
	a.of, a.n = of, a.n+1
	a.items = binary.BigEndian.AppendUint32(a.items, uint32(int32(size)))
}

func (a *array) bytea(v string) {
	a.next(pgtype.ByteaOID, len(v))
	a.items = append(a.items, v...)
}

// owner adds the zero owner as NULL.
func (a *array) owner(o *lease.Owner) {
	if o.IsZero() {
		a.next(pgtype.ByteaOID, null)
		a.nulls = 1
		return
	}
	a.bytea(string(o[:]))
}

func (a *array) int(v int64) {
	a.next(pgtype.Int8OID, 8)
	a.items = binary.BigEndian.AppendUint64(a.items, uint64(v))
}

func (a *array) text(v string) {
	a.next(pgtype.TextOID, len(v))
	a.items = append(a.items, v...)
}

// binary appends what array_recv of the server reads of an array with items: the number of
// dimensions, whether there is a NULL, the type of the items, and the length and the first index of
// the one dimension.
func (a *array) binary(b []byte) []byte {
	for _, v := range [...]uint32{1, a.nulls, a.of, uint32(a.n), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return append(b, a.items...)
}

var quoted = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// Value is the array as a literal.
func (a *array) Value() (driver.Value, error) {
	text := []byte{'{'}
	for rest := a.items; len(rest) > 0; {
		if len(text) > 1 {
			text = append(text, ',')
		}
		size := int32(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; size == null {
			text = append(text, "NULL"...)
			continue
		}
		text = a.literal(text, rest[:size])
		rest = rest[size:]
	}
	return string(append(text, '}')), nil
}

func (a *array) literal(text, item []byte) []byte {
	switch a.of {
	case pgtype.Int8OID:
		return strconv.AppendInt(text, int64(binary.BigEndian.Uint64(item)), 10)
	case pgtype.TextOID:
		return append(append(append(text, '"'), quoted.Replace(string(item))...), '"')
	}
	return append(hex.AppendEncode(append(text, `"\\x`...), item), '"')
}

func renewArrays(reqs []lease.RenewRequest) []any {
	n := len(reqs)
	keys, owners, tokens, ttls := newArray(n), newArray(n), newArray(n), newArray(n)
	for i := range reqs {
		keys.bytea(reqs[i].Key)
		owners.bytea(string(reqs[i].Owner[:]))
		tokens.int(int64(reqs[i].Token))
		ttls.int(conn.Micros(reqs[i].TTL))
	}
	return []any{keys, owners, tokens, ttls}
}
