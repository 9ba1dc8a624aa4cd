package oncehttp_test

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

func TestKeysOfAHeader(t *testing.T) {
	for field, want := range map[string]string{
		`key`: "key", `"key"`: "key", ` "a b" `: "a b", `"a\"b\\"`: `a"b\`, `"k";p=1`: "k", `8e03978e-40d5-43e8-bc93-6894a57f9324`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
	} {
		if got, err := oncehttp.ParseKey([]string{field}); got != want || err != nil {
			t.Errorf("%s: got %q, %v", field, got, err)
		}
	}
}

// What is taken for a key is one, and is spelled as a string it is the same.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{`key`, `"key"`, `"a\"b"`, `"a\\"`, `"`, ``, `"a`, `"a\`, `"a";b`, `a,b`, "\x00", "é", strings.Repeat("k", 300), `"\x00rowlock"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		key, err := oncehttp.ParseKey([]string{field})
		if err != nil {
			return
		}
		if err := lease.CheckKey(key); err != nil {
			t.Errorf("%q: %v", field, err)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := oncehttp.ParseKey([]string{quoted}); again != key || err != nil {
			t.Errorf("%q is %q, but %q is %q, %v", field, key, quoted, again, err)
		}
	})
}

func FuzzStored(f *testing.F) {
	whole, err := oncehttp.Encode(201, http.Header{"X-A": {"1", "2"}, "Set-Cookie": {"s=1"}}, []byte("body\x00\xff"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(whole), "", "\x01", "\x02{}", "\x01{}", "\x01null", `{"status":200}`, "\x01" + `{"status":200,"header":{"set-cookie":["a"]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := oncehttp.Decode(b)
		if err != nil {
			if !errors.Is(err, lease.ErrCorrupt) {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		for name := range s.Header {
			if http.CanonicalHeaderKey(name) == "Set-Cookie" {
				t.Errorf("%q has a cookie", b)
			}
		}
		again, err := oncehttp.Encode(s.Status, s.Header, s.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := oncehttp.Decode(again); err != nil || got.Status != s.Status || string(got.Body) != string(s.Body) || len(got.Header) != len(s.Header) || len(s.Header) > 0 && !reflect.DeepEqual(got.Header, s.Header) {
			t.Errorf("%q became %s, %v", b, strconv.Quote(string(again)), err)
		}
	})
}
