package sqlstore

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Lists are JSON, for databases whose statements take a list in no other way. All text in them is
// hexadecimal, because JSON cannot hold arbitrary bytes: encoding/json would replace them. The code
// does not use encoding/json, because it makes thousands of lists a second.

// HexList encodes keys as a JSON array of hexadecimal strings.
func HexList(keys []string) string {
	b := startList(len(keys), 32)
	for _, k := range keys {
		b = append(appendHex(append(b, '"'), k), `",`...)
	}
	return endList(b)
}

// RenewList encodes renewals as a JSON array of {k, o, t, d}: key, owner, token, and the ttl
// as unit has it.
func RenewList(reqs []lease.RenewRequest, unit func(ttl time.Duration) int64) string {
	b := startList(len(reqs), 120)
	for i := range reqs {
		r := &reqs[i]
		b = appendHex(append(b, `{"k":"`...), r.Key)
		b = hex.AppendEncode(append(b, `","o":"`...), r.Owner[:])
		b = strconv.AppendInt(append(b, `","t":`...), int64(r.Token), 10)
		b = strconv.AppendInt(append(b, `,"d":`...), unit(r.TTL), 10)
		b = append(b, `},`...)
	}
	return endList(b)
}

// ChangeList encodes changes as a JSON array of [key, present owner, present token, next owner,
// note, ttl in µs, bucket]. The zero owner is an empty string. The items are arrays, because
// finding a name in an object took the servers a tenth longer.
func ChangeList(changes []Change) string {
	b := startList(len(changes), 160)
	for i := range changes {
		c := &changes[i]
		b = appendHex(append(b, `["`...), c.From.Key)
		b = appendOwner(append(b, `","`...), &c.From.Owner)
		b = strconv.AppendInt(append(b, `",`...), int64(c.From.Token), 10)
		b = appendOwner(append(b, `,"`...), &c.To)
		b = appendHex(append(b, `","`...), c.Note)
		b = strconv.AppendInt(append(b, `",`...), conn.Micros(c.TTL), 10)
		b = strconv.AppendInt(append(b, ','), int64(lease.Bucket(c.From.Key)), 10)
		b = append(b, `],`...)
	}
	return endList(b)
}

func startList(items, size int) []byte { return append(make([]byte, 0, 2+items*size), '[') }

// endList puts the bracket in the place of the last comma.
func endList(b []byte) string {
	if len(b) > 1 {
		b = b[:len(b)-1]
	}
	return string(append(b, ']'))
}

func appendHex(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(s) {
		b = append(b, digits[s[i]>>4], digits[s[i]&15])
	}
	return b
}

func appendOwner(b []byte, o *lease.Owner) []byte {
	if o.IsZero() {
		return b
	}
	return hex.AppendEncode(b, o[:])
}

func appendTrace(b []byte, r *TraceRow) []byte {
	b = strconv.AppendInt(b, r.Age.Microseconds(), 10)
	b = strconv.AppendInt(append(b, ','), r.ID, 10)
	b = appendHex(append(b, `,"`...), r.Key)
	b = append(append(b, `","`...), r.Event...)
	b = strconv.AppendInt(append(b, `",`...), int64(r.Token), 10)
	b = hex.AppendEncode(append(b, `,"`...), r.Owner[:])
	b = appendHex(append(b, `","`...), r.Note)
	b = strconv.AppendInt(append(b, `",`...), r.Number, 10)
	b = appendHex(append(b, `,"`...), r.Detail)
	return append(b, '"')
}
