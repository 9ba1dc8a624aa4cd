package corrupt

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// FuzzConsole shows rows by hand: each page is shown, or says that a row is corrupt.
func FuzzConsole(f *testing.F) {
	seed(f)
	e := loose(f)
	c, err := rowlock.Open(e.Pool(f), e.Dialect, servertest.Config())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	h, err := console.Handler(c, console.Options{
		Authorize: func(*http.Request) (string, error) { return "ada", nil },
		Logger:    slog.New(slog.DiscardHandler), Every: 10 * time.Millisecond, Write: true,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofLocks)
		d := &draw{calls}
		for range min(len(calls), 3) {
			path := []string{"/", "/key", "/waits", "/records"}[d.next(4)]
			q := url.Values{"k": {d.key()}, "sort": {[]string{"key", "age", "expiry"}[d.next(3)]}}
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path+"?"+q.Encode(), nil))
			page := w.Body.String()
			if w.Code != http.StatusOK && (w.Code != http.StatusServiceUnavailable || !strings.Contains(page, "corrupt")) {
				t.Errorf("%s: %d: %s", path, w.Code, page)
			}
		}
	})
}
