package etcd

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// The states of a record.
const (
	open   = 'o'
	sealed = 's'
)

// record is what is kept of a key.
type record struct {
	epoch int64
	state byte
	// The last holder, unless it has released the key, or the mover that sealed it.
	owner   lease.Owner
	granted time.Time // by the owner's clock; only Inspect shows it
	note    string
	version int64 // how often the record was written: the counter of the owner's token
}

// value is the record as it is written. A record without an owner ends with a space, because a
// value must sort above the prefix that it is compared with.
func (r record) value() string {
	head := stem(r.epoch, r.state) + " "
	if r.owner.IsZero() {
		return head
	}
	return fmt.Sprintf("%s%s %016x %s", head, r.owner, r.granted.UnixMicro(), r.note)
}

// stem is the beginning of all records in an epoch and a state.
func stem(epoch int64, state byte) string { return fmt.Sprintf("%016x%c", epoch, state) }

const stemLen, ownerLen = 16 + 1, 2 * len(lease.Owner{})

// parse reads a record. nil is no record: version 0. What value would write in another way, such as
// an epoch with a sign, is refused, because guards compare records byte by byte.
func parse(kv *mvccpb.KeyValue) (record, error) {
	if kv == nil {
		return record{}, nil
	}
	r, err := read(kv)
	if err == nil && (r.value() != string(kv.Value) || r.epoch < 0 || r.epoch > lastEpoch) {
		err = corrupt(kv)
	}
	return r, err
}

func corrupt(kv *mvccpb.KeyValue) error {
	const most = 200 // of what may be a megabyte
	return fmt.Errorf("%w: etcd has %d bytes at %q: %q", lease.ErrCorrupt, len(kv.Value), kv.Key,
		kv.Value[:min(len(kv.Value), most)])
}

func read(kv *mvccpb.KeyValue) (record, error) {
	v := string(kv.Value)
	r := record{version: kv.Version}
	if len(v) <= stemLen || v[stemLen] != ' ' || v[stemLen-1] != open && v[stemLen-1] != sealed {
		return r, corrupt(kv)
	}
	var err error
	if r.epoch, err = strconv.ParseInt(v[:stemLen-1], 16, 64); err != nil {
		return r, corrupt(kv)
	}
	r.state, v = v[stemLen-1], v[stemLen+1:]
	if v == "" {
		return r, nil
	}
	owner, rest, _ := strings.Cut(v, " ")
	granted, note, ok := strings.Cut(rest, " ")
	micros, err := strconv.ParseInt(granted, 16, 64)
	n, bad := hex.Decode(r.owner[:], []byte(owner[:min(len(owner), ownerLen)]))
	if !ok || err != nil || bad != nil || n != len(r.owner) {
		return r, corrupt(kv)
	}
	r.granted, r.note = time.UnixMicro(micros), note
	return r, nil
}

// noteCut is the note, no longer than rowlock writes it.
func (r record) noteCut() string { return r.note[:min(len(r.note), lease.MaxStoredNote)] }

// absent reports whether there is no record.
func (r record) absent() bool { return r.version == 0 }

// token is that of the last lease granted. A record without an owner, or a sealed one, was written
// once more since.
func (r record) token() lease.Token {
	counter := r.version
	if r.owner.IsZero() || r.state == sealed {
		counter--
	}
	return lease.EpochStart(r.epoch) | lease.Token(counter)
}

// The names in etcd of a key's record and of its holder.
func (c *Cluster) recordOf(key string) string {
	return c.prefix + "r/" + hex.EncodeToString([]byte(key))
}

func (c *Cluster) holderOf(key string) string {
	return c.prefix + "h/" + hex.EncodeToString([]byte(key))
}

// keyOf returns the key of either name.
func (c *Cluster) keyOf(name string) (string, bool) {
	key, err := hex.DecodeString(name[min(len(name), len(c.recordOf(""))):])
	return string(key), err == nil
}

// begins are the guards that a record begins with stem, whose last byte is not 255.
func (c *Cluster) begins(key, stem string) []clientv3.Cmp {
	next := []byte(stem)
	next[len(next)-1]++
	value := clientv3.Value(c.recordOf(key))
	return []clientv3.Cmp{
		clientv3.Compare(value, ">", stem), clientv3.Compare(value, "<", string(next)),
	}
}

// isLast are the guards that the key was not granted after l, and that l was not released. The
// lease may have ended.
func (c *Cluster) isLast(l lease.Lease) []clientv3.Cmp {
	counter := int64(l.Token & lastCounter) // which alone is the type of a version
	guards := c.begins(l.Key, stem(lease.Epoch(l.Token), open)+" "+l.Owner.String())
	return append(guards, clientv3.Compare(clientv3.Version(c.recordOf(l.Key)), "=", counter))
}

// isFree is the guard that no holder has the key, isHeld that one has.
func (c *Cluster) isFree(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.holderOf(key)), "=", 0)
}

func (c *Cluster) isHeld(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.holderOf(key)), ">", 0)
}

// hasRoom is the guard that the epoch has another token.
func (c *Cluster) hasRoom(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.Version(c.recordOf(key)), "<", c.last)
}
