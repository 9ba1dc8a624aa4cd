package hazard

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// FuzzKey takes two keys: they are one lock exactly if they are the same bytes, on every
// database.
func FuzzKey(f *testing.F) {
	for _, pair := range [][2]string{
		{"A", "a"},
		{"a", "a "},
		{"a", "a\x00"},
		{"\x00", "\x00\x00"},
		{"á", "a"},
		{"á", "a\u0301"},
		{"Á", "á"},
		{"ß", "ss"},
		{"\xff", "\xfe"},
		{"\xc3\x28", "\ufffd("},
		{"1", "01"},
		{"k", "k"},
		{" ", "\t"},
		{"'", "''"},
		{`\`, `\\`},
		{"%", "_"},
		{"", "k"},
		{strings.Repeat("a", 255), strings.Repeat("a", 254) + "b"},
		{strings.Repeat("\xff", 255), strings.Repeat("\xff", 254)},
		{strings.Repeat("é", 127) + "x", strings.Repeat("é", 127) + "y"},
		{strings.Repeat("a", 256), strings.Repeat("a", 255)},
		{lease.Reserved, lease.Reserved + "x"},
		{"\x00rowlock", "\x00ROWLOCK\x00"},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	var here []*keyed
	for _, k := range testdb.Kinds {
		// it is one test: it cannot skip a part
		if k.Name == "sqlite" || os.Getenv("ROWLOCK_TEST_"+strings.ToUpper(k.Name)) != "" {
			here = append(here, newKeyed(f, k))
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, on := range here {
			on.check(t, string(a), string(b))
		}
	})
}

// keyed is one database, seen by two processes.
type keyed struct {
	env  *testdb.Env
	c, r *rowlock.Client
}

func newKeyed(f *testing.F, k testdb.Kind) *keyed {
	on := &keyed{env: k.Open(f)}
	for _, c := range []**rowlock.Client{&on.c, &on.r} {
		var err error
		if *c, err = rowlock.Open(on.env.Pool(f), on.env.Dialect, servertest.Config()); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = (*c).Close() })
	}
	return on
}

func (on *keyed) check(t *testing.T, a, b string) {
	first := on.lock(t, on.c, a)
	if first == nil {
		return
	}
	defer func() { _ = first.Unlock(t.Context()) }()
	var stored []byte
	row := on.env.DB.QueryRow(
		on.env.SQL(`SELECT {key} FROM {rowlock} WHERE owner IS NOT NULL AND {key} = ?`), []byte(a))
	if err := row.Scan(&stored); err != nil || !bytes.Equal(stored, []byte(a)) {
		t.Errorf("%s: %q is stored as %q, %v", on.env.Name, a, stored, err)
	}
	if second := on.lock(t, on.r, b); second != nil {
		if a == b {
			t.Errorf("%s: %q was granted twice", on.env.Name, a)
		}
		_ = second.Unlock(t.Context())
	} else if a != b && lease.CheckKey(b) == nil {
		t.Errorf("%s: %q and %q are one lock", on.env.Name, a, b)
	}
}

// lock returns nil if the key is held or is refused.
func (on *keyed) lock(t *testing.T, c *rowlock.Client, key string) *rowlock.Lock {
	l, err := c.TryLock(t.Context(), key)
	want := rowlock.ErrHeld
	if lease.CheckKey(key) != nil {
		want = rowlock.ErrInvalidKey
	}
	if err != nil && !errors.Is(err, want) || err == nil && want == rowlock.ErrInvalidKey {
		t.Errorf("%s: %q: %v", on.env.Name, key, err)
	}
	return l
}
