package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/ports"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// TestTheConsoleFitsAScreen saves the documentation's screenshots if ROWLOCK_SCREENSHOTS names a
// folder, an absolute one: docs/operations.
func TestTheConsoleFitsAScreen(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.plays()
	w := b.opens("--write").browses()
	w.shows("shop/orders/1042")
	w.becomes(`document.getElementById("status").textContent === "Live"`)
	w.picture("held", 1280, 520)
	w.becomes(`document.getElementById("live").scrollWidth <= document.getElementById("live").clientWidth`)
	for _, shown := range []string{"!", ""} {
		w.does(chromedp.KeyEvent("?"))
		w.becomes(shown + `document.getElementById("keys").hidden`)
	}
	w.does(chromedp.KeyEvent("/"))
	w.becomes(`document.activeElement.id === "prefix"`)
	w.does(chromedp.Navigate(w.base() + "key?k=shop/orders/1042"))
	w.shows("in the queue")
	w.picture("key", 1200, 1180)
	for _, page := range []string{"", "waits", "cycles", "records", "key?k=shop/orders/1042", "process?k=web-1/4711/orders"} {
		w.does(emulation.SetDeviceMetricsOverride(390, 800, 1, false), chromedp.Navigate(w.base()+page))
		w.becomes(`document.documentElement.scrollWidth <= 390`)
		w.becomes(`document.getElementById("live").scrollWidth <= document.getElementById("live").clientWidth`)
		// No key breaks.
		w.becomes(`[...document.querySelectorAll("tbody a")].every(e => e.getClientRects().length === 1)`)
		if page == "" {
			w.picture("narrow", 400, 800)
		}
	}
	w.content()
}

// plays has locks and waiters as a shop has them.
func (b *bed) plays() {
	b.Helper()
	for _, holder := range []struct{ identity, key, note string }{
		{"batch-1/311/import", "nightly", "import of prices"},
		{"web-1/4711/orders", "shop/orders/1042", "refund"},
		{"web-2/4713/orders", "shop/orders/1043", ""},
		{"web-2/4713/orders", "shop/orders/1044", "confirm payment"},
		{"stock-1/97/stock", "shop/stock/8812", "recount"},
		{"stock-2/98/stock", "shop/stock/\xff\x00", ""},
	} {
		c := b.client(holder.identity, false)
		l, err := c.Lock(b.Context(), holder.key, rowlock.Note(holder.note))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Unlock(context.Background()) })
	}
	ctx, end := context.WithCancel(b.Context())
	b.Cleanup(end)
	for _, waiter := range []string{"web-1/4711/orders", "web-2/4713/orders", "web-3/4702/orders"} {
		c := b.client(waiter, true)
		go func() { _, _ = c.Lock(ctx, "shop/orders/1042", rowlock.Note("ship")) }()
	}
	_ = b.wants(0, "", "history", "-o", "json")
}

func (b *bed) client(identity string, fair bool) *rowlock.Client {
	b.Helper()
	c, err := rowlock.Open(b.Pool(b.T), b.Dialect, &rowlock.Config{Identity: identity, Fair: fair})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// base is the console's address without its secret.
func (p *page) base() string {
	base, _, _ := strings.Cut(p.url, "?")
	return base
}

// picture saves what a window of this size shows, light and dark.
func (b *browser) picture(name string, wide, high int64) {
	b.Helper()
	dir := os.Getenv("ROWLOCK_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		var png []byte
		b.does(emulation.SetDeviceMetricsOverride(wide, high, 1, false),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
			}), chromedp.CaptureScreenshot(&png))
		if len(png) > 150<<10 {
			b.Errorf("the picture %s has %d bytes", name, len(png))
		}
		file := filepath.Join(dir, "console-"+name+"-"+scheme+".png")
		if err := os.WriteFile(file, png, 0o644); err != nil { //nolint:gosec // it is published
			b.Fatal(err)
		}
	}
}

// The keyboard alone searches, sorts and opens a key.
func TestTheConsoleIsUsedByKeyboard(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("orders/7", "stock/1")
	w := b.opens().browses()
	w.shows("stock/1")
	w.does(chromedp.KeyEvent(kb.Tab))
	w.becomes(`document.activeElement.textContent === "Skip to content"`)
	w.focuses("#prefix")
	w.does(chromedp.KeyEvent("orders/" + kb.Enter))
	w.becomes(`location.search === "?prefix=orders%2F" && !document.body.innerText.includes("stock/1")`)
	w.focuses(`th:nth-of-type(4) a`)
	w.does(chromedp.KeyEvent(kb.Enter))
	w.becomes(`document.querySelector("th[aria-sort]").textContent.startsWith("Held for")`)
	w.becomes(`document.getElementById("prefix").value === "orders/"`)
	w.focuses(`#live tbody a`)
	w.does(chromedp.KeyEvent(kb.Enter))
	w.becomes(`document.querySelector("h1").textContent === "orders/7"`)
	w.is(`document.querySelector("#release") === null`) // without --write
	w.content()
}

// A screen reader gets names and roles.
func TestTheConsoleIsRead(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("orders/7")
	w := b.opens("--write").browses()
	w.hears("banner", "main", "contentinfo", "search", "navigation Pages", "heading Held keys",
		"columnheader Expires in", "rowheader orders/7", "progressbar time to expiry", "link orders/7",
		"searchbox Key or prefix", "button Open key", "button Search", "button Pause", "status")
	w.does(chromedp.Navigate(w.base() + "key?k=orders/7"))
	w.hears("heading orders/7", "heading Take this key from its holder",
		"textbox Type the key, orders/7, to confirm", "textbox Reason, for the record")
	w.content()
}

// hears fails the test unless a screen reader is given these roles and names.
func (b *browser) hears(wants ...string) {
	b.Helper()
	type value struct {
		Value any `json:"value"`
	}
	var tree struct { // chromedp's own type knows no words that a later Chromium has
		Nodes []struct {
			Role value `json:"role"`
			Name value `json:"name"`
		} `json:"nodes"`
	}
	b.does(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree)
	}))
	said := map[string]bool{}
	for _, n := range tree.Nodes {
		said[fmt.Sprint(n.Role.Value)], said[fmt.Sprint(n.Role.Value, " ", n.Name.Value)] = true, true
	}
	for _, want := range wants {
		if !said[want] {
			b.Errorf("a screen reader is not given %q but %v", want, slices.Sorted(maps.Keys(said)))
		}
	}
}

func TestAnOpenConsoleSaysThatTheTablesAreGoneAndComesBack(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	w := b.opens().browses()
	w.shows("No key is held")
	if err := schema.Uninstall(b.Context(), b.DB, b.Dialect); err != nil {
		t.Fatal(err)
	}
	w.shows("The tables are missing")
	w.becomes(`document.getElementById("status").textContent === "Not up to date"`)
	if err := schema.Migrate(b.Context(), b.DB, b.Dialect); err != nil {
		t.Fatal(err)
	}
	w.becomes(`document.getElementById("status").textContent === "Live" &&
		document.getElementById("trouble").hidden`)
	w.content()
}

// The page of a console that has ended says so, and says what to do after a new start.
func TestAConsoleThatHasEndedIsSaid(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	at, err := ports.Free(1) // which no outgoing connection takes meanwhile
	if err != nil {
		t.Fatal(err)
	}
	p := b.opens("--listen", at[0])
	w := p.browses()
	w.becomes(`document.getElementById("status").textContent === "Live"`)
	began := time.Now()
	p.stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("with a page open, the console takes %s to end", took)
	}
	w.becomes(`document.getElementById("status").textContent.startsWith("Connection lost")`)
	b.opens("--listen", at[0])
	w.becomes(`document.getElementById("status").textContent.startsWith("You are no longer admitted")`)
}
