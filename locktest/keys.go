package locktest

import (
	"errors"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

var keyProperties = []property{
	{"keys are bytes: nothing is folded, trimmed, padded or cut", keysAreBytes},
	{"each of the 256 bytes is a key of its own", everyByte},
	{"an empty key and one of 256 bytes are refused", invalidKeys},
	{"an invalid key in a batch takes no valid one with it", invalidKeyInBatch},
	{"the keys that rowlock keeps for itself can be locked in a store", reservedKeys},
}

// distinctKeys are keys that some database takes for one another: by case, accent, padding, normal
// form, NUL, encoding, wildcard, number, or length.
func distinctKeys() []string {
	long := strings.Repeat("a", lease.MaxKey-1)
	return []string{
		"A", "a", "a ", " a", "a  ", "a\t", "a\n", "á", "a\u0301", "Á", "ß", "ss", "SS", "ı", "i", "I", "İ",
		"a\x00", "a\x00b", "\x00", "\x00\x00", " ", "\xff\xfe", "\xff", "\xfe\xff", "\xc3\x28", "\ufffd", "\xed\xa0\x80",
		"%", "_", "a%", "a_", `a\`, `a\\`, `\x61`, "'", "''", `"`, "`", "a;--", "$1", "?", ":a", "{a}", "a,b", "[", "null", "NULL",
		"1", "01", "1.0", "1e0", "+1", "0x31", "true", "é", "e\u0301", "\U0001F512", "Å", "\u212B",
		long, long + "1", long + "2", long + " ", strings.Repeat("b", lease.MaxKey), strings.Repeat("\x00", lease.MaxKey),
		strings.Repeat("\xff", lease.MaxKey), strings.Repeat("€", lease.MaxKey/3),
	}
}

func keysAreBytes(r *rig) { r.wantDistinct(distinctKeys()) }

func everyByte(r *rig) {
	keys := make([]string, 256)
	for i := range keys {
		keys[i] = string([]byte{byte(i)})
	}
	r.wantDistinct(keys)
}

// wantDistinct takes all keys at once, for different owners, and releases every other one.
//
// A store that cannot hold so many at once is asked for some after the other.
func (r *rig) wantDistinct(keys []string) {
	r.Helper()
	for some := range slices.Chunk(keys, r.h.most(len(keys))) {
		r.wantSomeDistinct(some)
	}
}

func (r *rig) wantSomeDistinct(keys []string) {
	r.Helper()
	leases, refused := r.takeAll(keys...)
	if i := slices.Index(refused, true); i >= 0 {
		r.Fatalf("%q was refused, as if another key were it", keys[i])
	}
	r.wantRows(leases)
	for i := range leases {
		if i%2 == 0 {
			r.wantRelease(leases[i], false)
		}
	}
	for i, got := range r.renewAll(leases...) {
		want := lease.Extended
		if i%2 == 0 {
			want = lease.Lost
		}
		if got != want {
			r.Errorf("renew %q: %v, want %v: only every other key was released", keys[i], got, want)
		}
	}
	for i := range leases {
		if i%2 == 1 {
			r.wantRelease(leases[i], false)
		}
	}
}

// wantRows checks that the store lists exactly these leases, byte for byte and in byte order.
func (r *rig) wantRows(leases []lease.Lease) {
	r.Helper()
	var keys []string
	byKey := make(map[string]lease.Lease)
	for _, l := range leases {
		keys, byKey[l.Key] = append(keys, l.Key), l
	}
	slices.Sort(keys)
	rows := r.list(lease.Filter{Keys: keys})
	if got := keysOf(rows); !slices.Equal(got, keys) {
		r.Errorf("inspect lists %q, want %q", got, keys)
	}
	for _, row := range rows {
		if row.Lease != byKey[row.Key] || !row.Held {
			r.Errorf("inspect shows %+v, want %+v", row, byKey[row.Key])
		}
	}
}

func keysOf(rows []lease.Record) []string {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
	}
	return keys
}

var badKeys = []string{"", strings.Repeat("k", lease.MaxKey+1), strings.Repeat("k", 5000)}

func invalidKeys(r *rig) {
	for _, key := range badKeys {
		a, err := acquireOne(r.ctx, r.here, request(key, lease.NewOwner()))
		if !errors.Is(err, lease.ErrInvalidKey) {
			r.Errorf("acquire of a key of %d bytes: %+v, %v; want lease.ErrInvalidKey", len(key), a, err)
		}
		l := lease.Lease{Key: key, Owner: lease.NewOwner(), Token: 1}
		if got, err := renewOne(r.ctx, r.here, l); err == nil && got.Outcome != lease.Lost {
			r.Errorf("renew of a key of %d bytes: %v", len(key), got.Outcome)
		}
		if got, err := releaseOne(r.ctx, r.here, l); err == nil && !got.Gone {
			r.Errorf("release of a key of %d bytes says it freed something", len(key))
		}
	}
	for _, row := range r.list(lease.Filter{}) {
		if !strings.HasPrefix(row.Key, lease.Reserved) {
			r.Errorf("an invalid key left a row: %+v", row)
		}
	}
}

// invalidKeyInBatch: either the item is refused and the others are granted, or the call fails and
// nothing has happened.
func invalidKeyInBatch(r *rig) {
	good, last := request("good", lease.NewOwner()), request("last", lease.NewOwner())
	answers, err := r.here.Acquire(r.ctx, []lease.AcquireRequest{good, request("", lease.NewOwner()), last})
	if err != nil {
		if !errors.Is(err, lease.ErrInvalidKey) {
			r.Errorf("acquire with an empty key: %v, want lease.ErrInvalidKey", err)
		}
		r.take("good")
		r.take("last")
		return
	}
	if len(answers) != 3 || !errors.Is(answers[1].Err, lease.ErrInvalidKey) {
		r.Fatalf("acquire with an empty key: %+v, want lease.ErrInvalidKey for the second", answers)
	}
	for i, q := range map[int]lease.AcquireRequest{0: good, 2: last} {
		if a := answers[i]; !a.Granted || a.Err != nil {
			r.Fatalf("the valid key %q was not granted: %+v", q.Key, a)
		}
		r.wantHeld(lease.Lease{Key: q.Key, Owner: q.Owner, Token: answers[i].Token})
	}
}

func reservedKeys(r *rig) {
	for _, key := range []string{lease.Reserved + "locktest", lease.Reserved} {
		l := r.take(key)
		r.wantHeld(l)
		r.wantRelease(l, false)
	}
}
