package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// LastCounter is an option: the last counter of a token.
func LastCounter(n int64) Option { return func(c *Cluster) { c.last = n } }

// Silence is an option: how long a watch may be silent.
func Silence(d time.Duration) Option { return func(c *Cluster) { c.silence = d } }

// SecondsFor is how long the etcd lease of a lock with this TTL lasts.
var SecondsFor = secondsFor

// Judge names the class of an error.
func Judge(err error, left bool) string {
	return []string{"refused", "passing", "unknown"}[judge(err, left)]
}

// Record is a record without its version, which etcd counts. Granted is in microseconds.
type Record struct {
	Epoch   int64
	State   byte
	Owner   lease.Owner
	Granted int64
	Note    string
}

// Value is the record as it is written.
func (r Record) Value() string {
	return record{
		epoch: r.Epoch, state: r.State, owner: r.Owner, granted: time.UnixMicro(r.Granted), note: r.Note,
	}.value()
}

// ParseRecord reads what Value has written.
func ParseRecord(value string) (Record, error) {
	r, err := parse(&mvccpb.KeyValue{Value: []byte(value), Version: 1})
	out := Record{Epoch: r.epoch, State: r.state, Owner: r.owner, Note: r.note}
	if !r.owner.IsZero() {
		out.Granted = r.granted.UnixMicro()
	}
	return out, err
}

// NamesOf are the names of a key's record, and of what says that it is held.
func NamesOf(prefix, key string) (record, holder string) {
	c := &Cluster{prefix: prefix}
	return c.recordOf(key), c.holderOf(key)
}

// ClaimName is where the owner of the records stands.
func ClaimName(prefix string) string { return (&Cluster{prefix: prefix}).claimName() }

// KeyOf is the key of either name.
func KeyOf(prefix, name string) (string, bool) { return (&Cluster{prefix: prefix}).keyOf(name) }

// HolderValue is what is written where a key is held.
func HolderValue(spare time.Duration) string {
	return string((&Cluster{}).hold("k", term{spare: spare}).ValueBytes())
}

// Lender returns a function that lends etcd leases.
func Lender(client *clientv3.Client) func(ttl time.Duration) (clientv3.LeaseID, error) {
	l := newLoans(context.Background(), client, 40*time.Second)
	return func(ttl time.Duration) (clientv3.LeaseID, error) {
		t, err := l.lend(context.Background(), ttl)
		return t.id, err
	}
}
