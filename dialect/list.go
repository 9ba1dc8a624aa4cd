package dialect

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// HexList encodes keys as a JSON array of hexadecimal strings: for databases whose statements take a list as JSON, which
// cannot hold arbitrary bytes.
func HexList(keys []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(hex.EncodeToString([]byte(k)))
		b.WriteByte('"')
	}
	b.WriteByte(']')
	return b.String()
}

// Wanted is a renewal as the JSON arrays of the renew sections have it.
type Wanted struct {
	Key   string `json:"k"`
	Owner string `json:"o"`
	Token int64  `json:"t"`
	TTL   int64  `json:"d"`
}

// RenewList encodes renewals as a JSON array; unit gives the ttl, or what else a section wants to know, in the database's unit.
func RenewList(reqs []lease.RenewRequest, unit func(lease.RenewRequest) int64) string {
	list := make([]Wanted, len(reqs))
	for i, r := range reqs {
		list[i] = Wanted{Key: hex.EncodeToString([]byte(r.Key)), Owner: r.Owner.String(), Token: r.Token, TTL: unit(r)}
	}
	b, _ := json.Marshal(list) // of strings and integers: cannot fail
	return string(b)
}
