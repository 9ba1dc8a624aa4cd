package postgres

import (
	"encoding/hex"
	"strconv"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Arrays are sent as text literals and cast in the statement: one prepared statement for every batch size, with any driver
// and in every protocol mode, where a driver's own array parameters differ.

func byteaArray(keys []string) string {
	b := []byte{'{'}
	for _, k := range keys {
		b = appendBytea(b, k)
	}
	return closeArray(b)
}

func appendBytea[T string | []byte](b []byte, v T) []byte {
	b = append(b, `"\\x`...)
	b = hex.AppendEncode(b, []byte(v))
	return append(b, '"', ',')
}

func appendInt(b []byte, v int64) []byte { return append(strconv.AppendInt(b, v, 10), ',') }

func closeArray(b []byte) string {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return string(append(b, '}'))
}

func renewArrays(reqs []lease.RenewRequest) []any {
	keys, owners, tokens, ttls := []byte{'{'}, []byte{'{'}, []byte{'{'}, []byte{'{'}
	for i := range reqs {
		keys = appendBytea(keys, reqs[i].Key)
		owners = appendBytea(owners, reqs[i].Owner[:])
		tokens = appendInt(tokens, reqs[i].Token)
		ttls = appendInt(ttls, dialect.Micros(reqs[i].TTL))
	}
	return []any{closeArray(keys), closeArray(owners), closeArray(tokens), closeArray(ttls)}
}
