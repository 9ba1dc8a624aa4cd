package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// FuzzTextOfAnybody holds any key with any note, and asks for any page with any header.
func FuzzTextOfAnybody(f *testing.F) {
	for _, text := range []string{"k", "<script>", "\xff\x00\x1b", "a\r\nb", `\`, "'\"&<>`", "\u202e", "\u2028", " "} {
		f.Add(text, text, text, text)
	}
	f.Add("k", "n", `prefix=\x`, "x")
	f.Add("k", "n", "k=k&sort=age&at=99999999999999999999", "x")
	client, h := anybodys(f)
	send := func(t *testing.T, r *http.Request, header string) {
		r.Header["X-Who"], r.Header["Origin"], r.Header["Last-Event-Id"] = []string{header}, []string{header}, []string{header}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		check(t, w)
	}
	f.Fuzz(func(t *testing.T, key, note, query, header string) {
		l, err := client.TryLock(t.Context(), key, rowlock.Note(note))
		if err != nil {
			return
		}
		defer func() { _ = l.Unlock(t.Context()) }()
		own := url.Values{"k": {keytext.Show(key)}, "prefix": {keytext.Show(key)}}.Encode()
		for _, q := range []string{own, query} {
			for _, path := range []string{"/", "/key", "/process", "/waits", "/records"} {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.URL = &url.URL{Path: path, RawQuery: q}
				send(t, r, header)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			r := httptest.NewRequestWithContext(ended, http.MethodGet, "/events", nil)
			r.URL = &url.URL{Path: "/events", RawQuery: "page=held&" + q}
			send(t, r, header)
		}
		typed := url.Values{"key": {keytext.Show(key)}, "token": {"1"}, "confirm": {query}, "reason": {note}}
		for _, form := range []string{typed.Encode(), query} {
			r := httptest.NewRequest(http.MethodPost, "/release", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			send(t, r, "")
		}
		if found, err := client.Inspect(t.Context(), lease.Filter{Keys: []string{key}}); query != keytext.Show(key) &&
			(err != nil || len(found) != 1 || found[0].Token != l.Token()) {
			t.Errorf("%q was taken without being typed: %+v, %v", key, found, err)
		}
	})
}

// anybodys is a console without a database.
func anybodys(f *testing.F) (*rowlock.Client, *console.Console) {
	f.Helper()
	client, err := rowlock.New(memstore.New(), &rowlock.Config{
		Reaper: rowlock.ReaperConfig{Off: true}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = client.Close() })
	h, err := console.Handler(client, console.Options{
		Authorize: func(r *http.Request) (string, error) { return "ada" + r.Header.Get("X-Who"), nil },
		// Views take turns: with the usual second between two readings, a fuzzer would wait.
		Logger: slog.New(slog.DiscardHandler), Write: true, Every: 10 * time.Millisecond,
	})
	if err != nil {
		f.Fatal(err)
	}
	return client, h
}

// check fails the test if an answer has anything in it that a text has smuggled in.
func check(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	page := w.Body.String()
	if w.Code >= 500 && w.Code != http.StatusServiceUnavailable || strings.Contains(page, "panic") {
		t.Errorf("the answer is %d: %s", w.Code, page)
	}
	if !utf8.ValidString(page) {
		t.Errorf("a page is not UTF-8: %q", page)
	}
	for _, r := range page {
		if r != '\n' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e || r == 0x2028) {
			t.Errorf("a page has %U in it", r)
		}
	}
	if strings.Contains(page, "<html") && (strings.Count(page, "<script") != 1 || strings.Count(page, "<main") != 1) {
		t.Errorf("a text has become markup: %s", page)
	}
	checkHeader(t, w.Header())
}

// checkHeader fails the test if a header has more than one line, or names another server.
func checkHeader(t *testing.T, h http.Header) {
	t.Helper()
	for name, values := range h {
		if text := strings.Join(values, ""); !printable(text) {
			t.Errorf("the header %s is %q", name, text)
		}
	}
	if len(h["Content-Security-Policy"]) != 1 || len(h["X-Frame-Options"]) != 1 {
		t.Errorf("a page may be framed: %v", h)
	}
	if to := h.Get("Location"); to != "" && !strings.HasPrefix(to, "key?") {
		t.Errorf("the answer leads to %q", to)
	}
}

func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
