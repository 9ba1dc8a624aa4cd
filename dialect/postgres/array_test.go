package postgres

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/lease"
	"pgregory.net/rapid"
)

// read has pgx read an array as it was sent, in either format.
func read[T any](t *rapid.T, a *array, oid uint32) (binary, text []T) {
	types := pgtype.NewMap()
	r := new(request)
	format, _, err := r.value(oid, a)
	if err == nil {
		err = types.Scan(oid, format, r.bytes, &binary)
	}
	if err != nil {
		t.Fatalf("in format %d: %v", format, err)
	}
	literal, err := a.Value()
	if err == nil {
		err = types.Scan(oid, pgx.TextFormatCode, []byte(literal.(string)), &text)
	}
	if err != nil {
		t.Fatalf("%v: %v", literal, err)
	}
	return binary, text
}

func same[T any](t *rapid.T, a *array, oid uint32, want []T, equal func(a, b T) bool) {
	binary, text := read[T](t, a, oid)
	if !slices.EqualFunc(binary, want, equal) || !slices.EqualFunc(text, want, equal) {
		t.Errorf("%v was sent as %v, and as a literal as %v", want, binary, text)
	}
}

// TestAnArrayIsTheSameInBothFormats: a driver that is sent literals must not lock other keys.
func TestAnArrayIsTheSameInBothFormats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var keys, owners, numbers, texts array
		some := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, lease.MaxKey), 0, 9).Draw(t, "keys")
		for _, key := range some {
			keys.bytea(string(key))
		}
		same(t, &keys, pgtype.ByteaArrayOID, some, bytes.Equal)
		all := rapid.SliceOfN(rapid.SampledFrom([]lease.Owner{{}, {0: 1}, {15: 0xff}}), 0, 9).Draw(t, "owners")
		var raw [][]byte
		for _, o := range all {
			owners.owner(&o)
			if raw = append(raw, o[:]); o.IsZero() {
				raw[len(raw)-1] = nil
			}
		}
		same(t, &owners, pgtype.ByteaArrayOID, raw, func(a, b []byte) bool {
			return bytes.Equal(a, b) && (a == nil) == (b == nil)
		})
		counts := rapid.SliceOf(rapid.Int64()).Draw(t, "numbers")
		for _, n := range counts {
			numbers.int(n)
		}
		same(t, &numbers, pgtype.Int8ArrayOID, counts, func(a, b int64) bool { return a == b })
		notes := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		for _, s := range notes {
			texts.text(s)
		}
		same(t, &texts, pgtype.TextArrayOID, notes, func(a, b string) bool { return a == b })
	})
}
