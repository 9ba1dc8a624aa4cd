package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// FuzzRequestOfAnybody sends any method, path, query, Host and headers, and a form that would take
// a key. Only a request of the console's own page may take it.
func FuzzRequestOfAnybody(f *testing.F) {
	const form = "key=k&token=1&confirm=k&reason=r"
	f.Add("GET", "/", "sort=age&at=1&after=k", "a", "", "", "", "", "")
	f.Add("GET", "/events", "page=key&k=k", "a", "http://b", "", "rowlock=x", "text/event-stream", "7")
	f.Add("GET", "/key", "k=k&k=j&done=%00", "a:80", "null", "cross-site", ";=\x00", "*/*;q=2", "-1")
	f.Add("POST", "/release", form, "a", "http://a", "", "", "", "")
	f.Add("POST", "/release", form, "a", "http://b", "", "", "", "")
	f.Add("POST", "/release", form, "a", "http://a", "same-site", "", "", "")
	f.Add("POST", "/release", form, "a", "http://b", "same-origin", "", "", "")
	f.Add("PUT", "//a/..%2f", "%zz&;", "", "", "", "", "", "")
	// What the fuzzer has found worth keeping.
	f.Add("GET", "0", "0", "0", "//a", "", "", "", "0")
	f.Add("GET", "/00 000", "0", "a28 ", "\x13", "", "0", "0", "\x94D\x94H\xf3\xbd")
	f.Add("POST", "/0", "k=k&9%00", "0", ":00", "same-origin", "E=a", "C/';q=2", "A")
	client, h := anybodys(f)
	f.Fuzz(func(t *testing.T, method, path, query, host, origin, site, cookie, accept, last string) {
		l, err := client.TryLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Unlock(t.Context()) }()
		// The test's own token: a form that names another takes nothing.
		query = strings.Replace(query, "token=1", "token="+l.Token().String(), 1)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		if path == "/events" {
			end() // a stream lasts for minutes
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", strings.NewReader(query))
		r.Method, r.URL, r.Host = method, &url.URL{Path: path, RawQuery: query}, host
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		for name, text := range map[string]string{
			"Origin": origin, "Sec-Fetch-Site": site, "Cookie": cookie, "Accept": accept, "Last-Event-Id": last,
		} {
			if text != "" {
				r.Header.Set(name, text)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		check(t, w)
		found, err := client.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if taken := found[0].Token != l.Token(); taken && !own(method, path, host, origin, site) {
			t.Errorf("%s %q of origin %q (%q) to %q took the key", method, path, origin, site, host)
		}
	})
}

// own reports whether a browser sends such a request from the console's own page, or whether no
// browser sends it.
func own(method, path, host, origin, site string) bool {
	if method != http.MethodPost || path != "/release" {
		return false
	}
	if site != "" {
		return site == "same-origin" || site == "none"
	}
	from, err := url.Parse(origin)
	return origin == "" || err == nil && from.Host == host
}
