package door

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asks is the answer of a door to a request with cookies.
func (d *Door) asks(method, path string, cookies ...*http.Cookie) *http.Response {
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("inside at " + r.URL.Path))
	})
	r := httptest.NewRequest(method, path, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	d.Admit(inside).ServeHTTP(w, r)
	return w.Result()
}

func TestTheAddressGivesACookieOfItsPathAlone(t *testing.T) {
	d := New("ada", slog.New(slog.DiscardHandler))
	answer := d.asks(http.MethodGet, d.Address())
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("the address is answered with %d and %v", answer.StatusCode, answer.Cookies())
	}
	to, c := answer.Header.Get("Location"), answer.Cookies()[0]
	if c.Path != to || len(to) < 20 || strings.Contains(to, d.secret) || strings.Contains(c.Value, d.path[1:]) {
		t.Errorf("the cookie is %v, the page is at %s", c, to)
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("the cookie is %v", c)
	}
	if answer := d.asks(http.MethodGet, to, c); answer.StatusCode != http.StatusOK {
		t.Errorf("the page is answered with %d", answer.StatusCode)
	}
}

func TestBothThePathAndTheCookieAreNeeded(t *testing.T) {
	d, other := New("ada", slog.New(slog.DiscardHandler)), New("ada", slog.New(slog.DiscardHandler))
	mine := d.admission()
	if d.path == other.path || d.secret == other.secret {
		t.Error("two doors are the same")
	}
	for name, c := range map[string]struct {
		method, path string
		cookies      []*http.Cookie
		code         int
	}{
		"a page":               {http.MethodGet, d.path + "/waits?prefix=a", []*http.Cookie{mine}, 200},
		"a form":               {http.MethodPost, d.path + "/release", []*http.Cookie{mine}, 200},
		"a planted cookie too": {http.MethodGet, d.path + "/", []*http.Cookie{other.admission(), mine}, 200},
		"no cookie":            {http.MethodGet, d.path + "/", nil, 403},
		"another cookie":       {http.MethodGet, d.path + "/", []*http.Cookie{other.admission()}, 403},
		"no path":              {http.MethodGet, "/", []*http.Cookie{mine}, 403},
		"the path's beginning": {http.MethodGet, d.path[:9] + "/", []*http.Cookie{mine}, 403},
		"a longer path":        {http.MethodGet, d.path + "x/", []*http.Cookie{mine}, 403},
		"no slash":             {http.MethodGet, d.path, []*http.Cookie{mine}, 403},
		"the secret elsewhere": {http.MethodGet, "/?" + d.secret, nil, 403},
		"another secret":       {http.MethodGet, d.path + "/?" + other.secret, nil, 403},
		"a form for the door":  {http.MethodPost, d.Address(), nil, 403},
		"the secret again":     {http.MethodGet, d.Address(), []*http.Cookie{mine}, 303},
	} {
		if answer := d.asks(c.method, c.path, c.cookies...); answer.StatusCode != c.code {
			t.Errorf("%s is answered with %d, want %d", name, answer.StatusCode, c.code)
		}
	}
}

func TestARefusedRequestIsLoggedWithoutTheAddress(t *testing.T) {
	var log bytes.Buffer
	d := New("ada", slog.New(slog.NewTextHandler(&log, nil)))
	d.asks(http.MethodGet, d.Address())
	d.asks(http.MethodGet, d.path+"/", d.admission())
	if log.Len() > 0 {
		t.Errorf("what was admitted is logged: %s", &log)
	}
	d.asks(http.MethodGet, d.path+"/")
	d.asks(http.MethodPost, "/"+d.secret)
	text := log.String()
	if strings.Count(text, "refused") != 2 || !strings.Contains(text, "192.0.2.1") {
		t.Errorf("two refused requests are logged as %q", text)
	}
	if strings.Contains(text, d.path[1:]) || strings.Contains(text, d.secret) {
		t.Errorf("the log has the address: %q", text)
	}
}
