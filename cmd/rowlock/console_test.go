package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// page is a console in a process of its own, and a browser without scripts.
type page struct {
	*bed
	url    string
	client *http.Client
	stop   func() // ends the console
}

// opens starts the program's console and opens it.
func (b *bed) opens(args ...string) *page {
	b.Helper()
	cmd := b.command(append([]string{"console", "--listen", "127.0.0.1:0", "--by", "ada"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			b.Errorf("rowlock console ends with %v", err)
		}
	})
	b.Cleanup(stop)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	return &page{b, strings.TrimSpace(address), &http.Client{Jar: jar}, stop}
}

// gets is the answer to a request of a path, after the address was opened.
func (p *page) gets(path string, form url.Values) (int, string) {
	p.Helper()
	base, _, _ := strings.Cut(p.url, "?")
	var answer *http.Response
	var err error
	if form != nil {
		answer, err = p.client.PostForm(base+path, form)
	} else {
		answer, err = p.client.Get(base + path)
	}
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (p *page) open() {
	p.Helper()
	answer, err := p.client.Get(p.url)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.RawQuery != "" {
		p.Fatalf("%s leads to %s with status %d", p.url, answer.Request.URL, answer.StatusCode)
	}
}

func TestTheConsoleShowsWhatIsHeldToWhoHasItsAddress(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("orders/7")
		p := b.opens()
		if code, text := p.gets("", nil); code != http.StatusForbidden || strings.Contains(text, "orders") {
			t.Errorf("without the secret it is answered with %d: %s", code, text)
		}
		p.open()
		if code, text := p.gets("", nil); code != http.StatusOK || !strings.Contains(text, "orders/7") {
			t.Errorf("it is answered with %d: %s", code, text)
		}
		if code, text := p.gets("findings", nil); code != http.StatusOK || !strings.Contains(text, "schema: ") {
			t.Errorf("findings are answered with %d: %s", code, text)
		}
		if code, _ := p.gets("release", url.Values{"key": {"orders/7"}}); code != http.StatusForbidden {
			t.Errorf("a forced release without --write is answered with %d", code)
		}
	})
}

// A browser sends cookies to every port of a host, and thus to other users' servers on 127.0.0.1.
func TestTheConsolesCookieIsSentNowhereElse(t *testing.T) {
	p := newBed(t, testdb.Kinds[0].Open(t)).opens()
	p.open()
	at, err := url.Parse(p.base())
	if err != nil {
		t.Fatal(err)
	}
	if len(at.Path) < 20 || len(p.client.Jar.Cookies(at)) != 1 {
		t.Errorf("%s gets %v", at, p.client.Jar.Cookies(at))
	}
	sent := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Cookie")
	}))
	defer other.Close()
	for _, path := range []string{"/", "/waits", "/key?k=k"} {
		answer, err := p.client.Get(other.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if cookie := <-sent; cookie != "" {
			t.Errorf("another port is sent %q with %s", cookie, path)
		}
	}
}

func TestTheConsoleTakesAKey(t *testing.T) {
	each(t, func(b *bed) {
		c := b.holds()
		l, err := c.Lock(b.Context(), "stuck")
		if err != nil {
			t.Fatal(err)
		}
		p := b.opens("--write")
		p.open()
		code, text := p.gets("release", url.Values{
			"key": {"stuck"}, "token": {itoa(int(l.Token()))}, "confirm": {"stuck"}, "reason": {"deploy hangs"},
		})
		if code != http.StatusOK || !strings.Contains(text, "was taken") {
			t.Fatalf("it is answered with %d: %s", code, text)
		}
		code, text = p.gets("key?prefix=stuck", nil) // as the one search field asks
		if code != http.StatusOK || !strings.Contains(text, "forced") || strings.Count(text, "deploy hangs") != 1 {
			t.Errorf("the key's page is answered with %d, or tells it twice: %s", code, text)
		}
		if out := b.wants(0, "", "history"); !strings.Contains(out, "ada") {
			t.Errorf("history prints %s", out)
		}
		tx, err := b.DB.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := l.Fence(b.Context(), tx); err == nil {
			t.Error("the fence of the holder passes")
		}
	})
}

func TestTheConsoleRefusesABadAddress(t *testing.T) {
	each(t, func(b *bed) { b.wants(2, "--listen 127.0.0.1:x", "console", "--listen", "127.0.0.1:x") })
}

// A viewer without locks of their own sees each kind of trouble, by one command and no database.
func TestADemoHasWhatTheConsoleShows(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := &bed{T: t, Env: testdb.Kinds[0].Open(t), dsn: "postgres://nowhere.invalid/x"}
	p := b.opens("--demo")
	p.open()
	for _, page := range []struct{ path, text string }{
		{"", "order/1042"},
		{"", "newsletter"},
		{"", "cron/report"},
		{"waits", "import/prices"},
		{"key?k=import/prices", "cart/77"}, // what its waiter holds meanwhile
		{"key?k=order/1042", "granted"},
		{"records", "hangs since Friday"},
		{"cycles", "Cycle of 2"},
	} {
		eventually(t, page.text, func() bool {
			_, text := p.gets(page.path, nil)
			return strings.Contains(text, page.text)
		})
	}
	p.stop()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("the demo leaves %v, %v", left, err)
	}
}

// A --by from a variable that is not set must not lock the operator out.
func TestAConsoleOfNobodyIsTheUsers(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("k")
	p := b.opens("--by", " ")
	p.open()
	if code, text := p.gets("", nil); code != http.StatusOK {
		t.Errorf("it is answered with %d: %s", code, text)
	}
}
