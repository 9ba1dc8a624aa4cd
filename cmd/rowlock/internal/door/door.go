// Package door lets those into the console who have its address: every user of a machine can reach
// a port on 127.0.0.1, and so can a web page in the operator's browser.
package door

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
)

// Door knows a path and a secret. Everything is below the path, and so is the cookie with the
// secret: a browser sends cookies to all ports of a host, thus to other users' servers on
// 127.0.0.1, and these do not know the path.
type Door struct {
	path, secret, who string
	log               *slog.Logger
}

// cookie is the name of those of all doors: their paths differ.
const cookie = "rowlock"

// New returns a door with a new path and a new secret. who is the name of those who have them. log
// gets the requests that are refused.
func New(who string, log *slog.Logger) *Door {
	return &Door{path: "/" + rand.Text(), secret: rand.Text(), who: who, log: log}
}

// Address is what to open: the path, and the secret as its query.
func (d *Door) Address() string { return d.path + "/?" + d.secret }

// Admit serves next below the path. It exchanges the secret in an address for a cookie, so that it
// is in no link of the page and not in the address bar. It tells strangers what to open.
func (d *Door) Admit(next http.Handler) http.Handler {
	next = http.StripPrefix(d.path, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, asks := d.below(r.URL.Path), equal(r.URL.RawQuery, d.secret)
		if _, err := d.Viewer(r); err == nil && below && !asks {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if r.Method != http.MethodGet || !below || r.URL.Path != d.path+"/" || !asks {
			// Not the path, which may be right: a reader of the log would have half of the address.
			d.log.LogAttrs(r.Context(), slog.LevelWarn, "rowlock: console: request without the address refused",
				slog.String("method", r.Method), slog.String("from", r.RemoteAddr), slog.String("host", r.Host))
			http.Error(w, "rowlock: open the address that `rowlock console` has printed: it is new at each start",
				http.StatusForbidden)
			return
		}
		http.SetCookie(w, d.admission())
		http.Redirect(w, r, d.path+"/", http.StatusSeeOther)
	})
}

// admission is Lax, because a strict cookie is not sent after a click on the address in a terminal
// that is a page itself. The console refuses forms of other sites.
func (d *Door) admission() *http.Cookie {
	return &http.Cookie{
		Name: cookie, Value: d.secret, Path: d.path + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// below reports whether a path is below the door's.
func (d *Door) below(path string) bool {
	first, _, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return found && equal("/"+first, d.path)
}

// equal takes as long for texts that are almost the same.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

var errStranger = errors.New("the request has no cookie with the secret")

// Viewer is console.Options.Authorize.
func (d *Door) Viewer(r *http.Request) (string, error) {
	for _, c := range r.CookiesNamed(cookie) {
		if equal(c.Value, d.secret) {
			return d.who, nil
		}
	}
	return "", errStranger
}
