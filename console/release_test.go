package console_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// taking is the form that takes a lock.
func taking(l *rowlock.Lock, confirm, reason string) url.Values {
	return url.Values{
		"key": {keytext.Show(l.Key())}, "token": {l.Token().String()},
		"confirm": {confirm}, "reason": {reason},
	}
}

func TestAKeyIsTakenFromItsHolder(t *testing.T) {
	each(t, func(b *bed) {
		l := b.lock("stuck\xff", rowlock.Note("nightly import"))
		b.wants(`key?k=stuck\xff`, "Take this key from its holder",
			fmt.Sprintf(`name="token" value="%d"`, l.Token()))
		code, page := b.post("", taking(l, `stuck\xff`, "deploy hangs"))
		if code != http.StatusOK || !strings.Contains(page, "The key was taken from its holder, who") {
			b.Fatalf("the answer is %d: %s", code, page)
		}
		for _, path := range []string{`key?k=stuck\xff`, "records"} {
			b.wants(path, "ada", "deploy hangs", "web-1/4711/orders", "nightly import")
		}
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := l.Fence(b.Context(), tx); err == nil {
			b.Error("the fence of the holder passes")
		}
	})
}

func TestWhatWasNotTypedIsNotTaken(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) { o.Write = true })
	l := b.lock("kept")
	stale := taking(l, "kept", "why")
	stale.Set("token", "77")
	nameless := taking(l, "kept", "why")
	nameless.Del("token")
	for name, c := range map[string]struct {
		form url.Values
		code int
	}{
		"another key":  {taking(l, "Kept", "why"), http.StatusUnprocessableEntity},
		"nothing":      {taking(l, "", "why"), http.StatusUnprocessableEntity},
		"no reason":    {taking(l, "kept", " "), http.StatusUnprocessableEntity},
		"long reason":  {taking(l, "kept", strings.Repeat("x", 1001)), http.StatusUnprocessableEntity},
		"other token":  {stale, http.StatusConflict},
		"no token":     {nameless, http.StatusBadRequest},
		"no form":      {url.Values{}, http.StatusBadRequest},
		"a large form": {url.Values{"key": {strings.Repeat("x", 20<<10)}}, http.StatusBadRequest},
	} {
		if code, page := b.post("", c.form); code != c.code {
			t.Errorf("%s is answered with %d, want %d: %s", name, code, c.code, page)
		}
	}
	b.isHeld("kept", l.Token())
}

// isHeld fails the test unless a key is held with a token.
func (b *bed) isHeld(key string, token lease.Token) {
	b.Helper()
	found, err := b.client.Inspect(b.Context(), rowlockFilter(key))
	if err != nil || len(found) != 1 || !found[0].Held || found[0].Token != token {
		b.Errorf("%q is %+v, %v; want it held with token %d", key, found, err, token)
	}
}

// A link says that a key was taken only if the viewer has taken it, and nothing has happened since.
func TestALinkDoesNotSayThatAKeyWasTaken(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.Write = true
		o.Authorize = func(r *http.Request) (string, error) {
			return cmp.Or(r.URL.Query().Get("who"), "ada"), nil
		}
	})
	const said = "was taken from its holder"
	b.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	take := func() (id string) {
		l := b.lock("k")
		if code, page := b.post("", taking(l, "k", "why")); code != http.StatusSeeOther {
			t.Fatalf("the answer is %d: %s", code, page)
		}
		all, err := b.client.ForceReleases(t.Context(), lease.ForcedFilter{Key: "k"})
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		return all[0].ID.String()
	}
	silent := func(links ...string) {
		t.Helper()
		for _, link := range links {
			if page := b.wants(link); strings.Contains(page, said) {
				t.Errorf("%s says that the key was taken", link)
			}
		}
	}
	silent("key?k=k&done=1", "key?k=k&done=", "waits?done=1", "records?done=1")
	first := take()
	b.wants("key?k=k&done="+first, said)
	silent("key?k=k", "key?k=k&done=1", "key?k=other&done="+first, "key?k=k&who=bob&done="+first)
	second := take()
	b.wants("key?k=k&done="+second, said)
	silent("key?k=k&done=" + first)
}

// The viewer types the key of a new holder anew; the page of a key that is free has no form.
func TestAHolderThatHasChangedIsTypedAnew(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) { o.Write = true })
	l := b.lock("k")
	form := taking(l, "k", "the import hangs")
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, page := b.post("", form)
	if code != http.StatusConflict || strings.Contains(page, `action="release"`) ||
		!strings.Contains(page, `role="alert">rowlock: `) {
		t.Errorf("the form for a key that is free is answered with %d: %s", code, page)
	}
	l = b.lock("k")
	code, page = b.post("", form)
	if code != http.StatusConflict || strings.Contains(page, `name="confirm" value`) ||
		!strings.Contains(page, fmt.Sprintf(`name="token" value="%d"`, l.Token())) ||
		!strings.Contains(page, `value="the import hangs"`) {
		t.Errorf("the form for an earlier holder is answered with %d: %s", code, page)
	}
	b.isHeld("k", l.Token())
}

func TestASharedKeyIsTakenFromAll(t *testing.T) {
	each(t, func(b *bed) {
		l, err := b.client.RLock(b.Context(), "shared")
		if err != nil {
			b.Fatal(err)
		}
		b.keep(l)
		b.wants("key?k=shared", fmt.Sprintf(`name="token" value="%d"`, l.Token()))
		if code, page := b.post("", taking(l, "shared", "why")); code != http.StatusOK {
			b.Errorf("the answer is %d: %s", code, page)
		}
		b.wants("key?k=shared", "free", "why")
	})
}

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.Write, o.TrustedOrigins = true, []string{"https://ops.example.com"}
	})
	l := b.lock("kept")
	code, page := b.post("https://evil.example", taking(l, "kept", "why"))
	if code != http.StatusForbidden {
		t.Errorf("it is answered with %d: %s", code, page)
	}
	b.isHeld("kept", l.Token())
	if code, _ := b.post("https://ops.example.com", taking(l, "kept", "why")); code != http.StatusOK {
		t.Errorf("a trusted origin's form is answered with %d", code)
	}
}

func TestAConsoleThatOnlyShowsTakesNothing(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	l := b.lock("kept")
	if page := b.wants("key?k=kept"); strings.Contains(page, `action="release"`) {
		t.Error("the page has the form")
	}
	if code, _ := b.post("", taking(l, "kept", "why")); code != http.StatusForbidden {
		t.Errorf("a forced release is answered with %d", code)
	}
	b.isHeld("kept", l.Token())
}

func TestNothingIsShownToStrangers(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.Write = true
		o.Authorize = func(r *http.Request) (string, error) {
			if r.URL.Query().Has("nameless") {
				return " ", nil
			}
			return "", errRefused
		}
	})
	l := b.lock("secret")
	for _, path := range []string{
		"", "waits", "cycles", "records", "key?k=secret", "events?page=held", "style.css", "?nameless",
	} {
		code, page := b.get(path)
		if code != http.StatusForbidden || strings.Contains(page, "secret") ||
			strings.Contains(page, errRefused.Error()) {
			t.Errorf("%s is answered with %d: %s", path, code, page)
		}
	}
	if code, _ := b.post("", taking(l, "secret", "why")); code != http.StatusForbidden {
		t.Errorf("a forced release is answered with %d", code)
	}
	b.isHeld("secret", l.Token())
}

func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) { o.Write = true })
	b.lock("k")
	for _, path := range []string{"", "waits", "cycles", "records", "key?k=k", "style.css", "console.js"} {
		answer, err := b.server.Client().Get(b.server.URL + "/locks/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, page := b.body(answer)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Frame-Options": "DENY",
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := answer.Header.Get(name); !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
				t.Errorf("%s has the header %s: %q", path, name, got)
			}
		}
		for _, bad := range []string{"http://", "https://", "//cdn", " style=", "onclick=", "<style", "javascript:"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s has %q in it", path, bad)
			}
		}
	}
}

func TestHandlerRefusesBadOptions(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	who := func(*http.Request) (string, error) { return "ada", nil }
	for want, o := range map[string]console.Options{
		"Authorize is nil":            {},
		"both Options.DB and":         {Authorize: who, DB: b.DB},
		"Options.Every is 1ms":        {Authorize: who, Every: 1e6},
		"Options.TrustedOrigins: inv": {Authorize: who, TrustedOrigins: []string{"ops"}},
	} {
		if _, err := console.Handler(b.client, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
	if _, err := console.Handler(nil, console.Options{Authorize: who}); err == nil {
		t.Error("a nil client is taken")
	}
}
