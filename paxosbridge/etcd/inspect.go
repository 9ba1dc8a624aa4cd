package etcd

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// page is how many keys one transaction reads of a range, pageOfKeys by their names.
const page, pageOfKeys = 1000, 50

// Inspect lists records in the byte order of their keys. See [lease.Store]. Age is by the owners'
// clocks. Remaining is right within a second. It is 0 if the TTL is over and etcd has not ended the
// lease yet.
func (c *Cluster) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	rows, err := c.list(ctx, "inspect", f)
	if err != nil {
		return nil, err
	}
	// For all: each lease may take one more request.
	asking, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	out := make([]lease.Record, len(rows))
	for i, r := range rows {
		out[i] = c.show(asking, r)
	}
	return out, nil
}

// row is a record and, if the key is held, its holder. bad says that the record cannot be read.
type row struct {
	key string
	record
	holder *mvccpb.KeyValue
	bad    error
}

// rowOf reads a record of a listing. One that cannot be read costs the others nothing.
func rowOf(key string, kv, holder *mvccpb.KeyValue) row {
	r, err := parse(kv)
	if err != nil {
		r = record{version: kv.Version}
	}
	return row{key, r, holder, err}
}

func (c *Cluster) show(ctx context.Context, r row) lease.Record {
	if r.bad != nil {
		return lease.Record{Lease: lease.Lease{Key: r.key}, Held: true, Err: r.bad}
	}
	shown := lease.Record{
		Lease: lease.Lease{Key: r.key, Owner: r.owner, Token: r.token()},
		Held:  r.holder != nil,
		Note:  r.noteCut(),
	}
	if !r.granted.IsZero() && r.state == open {
		shown.Age = time.Since(r.granted)
	}
	if r.state == sealed {
		shown.Owner = lease.Owner{} // sealing has released it
	}
	if r.holder != nil {
		shown.Remaining = c.remaining(ctx, r.holder)
	}
	return shown
}

func (c *Cluster) list(ctx context.Context, verb string, f lease.Filter) ([]row, error) {
	limit := cmp.Or(max(f.Limit, 0), page)
	var out []row
	take := func(rows []row) (enough bool) {
		for _, r := range rows {
			matches := strings.HasPrefix(r.key, f.Prefix) && (f.After == "" || r.key > f.After)
			if matches && (r.holder != nil || r.bad != nil || !f.Held) && len(out) < limit {
				out = append(out, r)
			}
		}
		return len(out) == limit
	}
	if len(f.Keys) > 0 {
		keys := slices.Compact(slices.Sorted(slices.Values(f.Keys)))
		for some := range slices.Chunk(keys, pageOfKeys) {
			rows, err := c.named(ctx, verb, some)
			if err != nil || take(rows) {
				return out, err
			}
		}
		return out, nil
	}
	for after := f.After; ; {
		rows, last, err := c.pageAfter(ctx, verb, f.Prefix, after, limit)
		if err != nil || take(rows) || last == "" {
			return out, err
		}
		after = last
	}
}

// named reads keys by their names.
func (c *Cluster) named(ctx context.Context, verb string, keys []string) (rows []row, err error) {
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, c.readKey(key)...)
	}
	resp, err := c.view(ctx, verb, c.prefix, ops...)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		r := rowOf(key, first(resp.Responses[2*i]), first(resp.Responses[2*i+1]))
		if !r.absent() {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// pageAfter reads a page of the keys with a prefix after one of them, at one moment. last is where
// the next page begins, or empty. A page of holders reaches at least as far as one of as many
// records, because each holder has a record.
func (c *Cluster) pageAfter(
	ctx context.Context, verb, prefix, after string, limit int,
) (rows []row, last string, err error) {
	most := int64(min(max(limit, 100), page))
	var ops []clientv3.Op
	for _, name := range []func(string) string{c.recordOf, c.holderOf} {
		from, end := name(prefix), clientv3.GetPrefixRangeEnd(name(prefix))
		if after != "" {
			from = max(from, name(after)+"\x00")
		}
		if from >= end {
			return nil, "", nil
		}
		ops = append(ops, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(most)))
	}
	resp, err := c.view(ctx, verb, c.prefix, ops...)
	if err != nil {
		return nil, "", err
	}
	holders := make(map[string]*mvccpb.KeyValue)
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if key, ok := c.keyOf(string(kv.Key)); ok {
			holders[key] = kv
		}
	}
	records := resp.Responses[0].GetResponseRange()
	for _, kv := range records.Kvs {
		key, ok := c.keyOf(string(kv.Key))
		if !ok {
			continue // another prefix begins with this one
		}
		rows, last = append(rows, rowOf(key, kv, holders[key])), key
	}
	if !records.More {
		last = ""
	}
	return rows, last, nil
}
