package oncehttp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// FuzzReplay sends one request under two accounts, and puts a garbage result into the row of the
// first. No account is answered with what another was, and no garbage is answered as a response.
func FuzzReplay(f *testing.F) {
	for _, s := range [][3]string{{"ada", "bob", "key"}, {"a", "A", `"k"`}, {"a", "a ", "k"}, {"a", "", "k"}, {"a", "\x00rowlock\x00shared", "k"}} {
		f.Add(s[0], s[1], s[2], []byte("body"), []byte("\x01{}"))
	}
	e := testdb.Kinds[0].Open(f)
	o, err := once.New(e.DB, e.Dialect, &once.Config{Reap: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = o.Close() })
	f.Fuzz(func(t *testing.T, first, second, key string, body, garbage []byte) {
		e.Exec(t, `DELETE FROM {rowlock_once}`)
		ask := asker(t, o, key, body)
		a, again, b := ask(first), ask(first), ask(second)
		if a.Code == http.StatusOK && again.Body.String() != a.Body.String() {
			t.Errorf("%q is answered %q, and then %d %q", first, a.Body, again.Code, again.Body)
		}
		if first != second && b.Code == http.StatusOK && b.Body.String() != "for "+second {
			t.Errorf("%q is answered %q", second, b.Body)
		}
		e.Exec(t, `UPDATE {rowlock_once} SET result = ?`, garbage)
		got := ask(first)
		if want, err := oncehttp.Decode(garbage); err != nil && got.Code < 400 && a.Code == http.StatusOK {
			t.Errorf("%q in the row is answered as %d %q", garbage, got.Code, got.Body)
		} else if err == nil && got.Code == want.Status && !bytes.Equal(got.Body.Bytes(), want.Body) && got.Code >= 200 && got.Code != http.StatusNoContent {
			t.Errorf("%q in the row is answered as %q", garbage, got.Body)
		}
	})
}

// asker returns what sends the request under an account. The handler answers with its name.
func asker(t *testing.T, o *once.Once, key string, body []byte) func(account string) *httptest.ResponseRecorder {
	account := func(r *http.Request) string { return r.Header.Get("X-Account") }
	h, err := oncehttp.New(o, &oncehttp.Config{Tenant: account})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "for "+account(r))
	}))
	return func(account string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(string(body)))
		r.Header = http.Header{"X-Account": {account}, "Idempotency-Key": {key}}
		w := httptest.NewRecorder()
		wrapped.ServeHTTP(w, r)
		return w
	}
}
