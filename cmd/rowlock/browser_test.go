package main

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium is one for all tests, because its start takes seconds.
var chromium struct {
	sync.Mutex
	ctx context.Context // of the process; nil before the first test that needs one
	end func()
}

func endChromium() {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.end != nil {
		chromium.end()
	}
}

// startChromium returns the process. It skips the test aloud without a Chromium.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), "chromium") {
		t.Fatal("chromium is required by ROWLOCK_TEST_REQUIRE and not installed")
	}
	if err != nil {
		t.Skip("SKIPPED, NOT TESTED IN A BROWSER: run scripts/apt-install chromium")
	}
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1200, 640), chromedp.WSURLReadTimeout(2*time.Minute))
	all, endAll := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(all)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	chromium.ctx, chromium.end = ctx, func() { end(); endAll() }
	return ctx
}

// browser is a tab.
type browser struct {
	*page
	ctx context.Context

	mu       sync.Mutex
	troubles []string
}

// browses opens a console in a browser. Cookies of other tests are of other paths.
func (p *page) browses() *browser {
	p.Helper()
	b := &browser{page: p}
	ctx, end := chromedp.NewContext(startChromium(p.T))
	p.Cleanup(end)
	b.ctx, end = context.WithTimeout(ctx, 2*time.Minute)
	p.Cleanup(end)
	chromedp.ListenTarget(b.ctx, b.hear)
	b.does(log.Enable(), chromedp.Navigate(p.url))
	return b
}

// hear collects what the browser complains of, such as what the page's own policy forbids.
func (b *browser) hear(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level != log.LevelError {
			return
		}
		text = e.Entry.Text + " " + e.Entry.URL
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles = append(b.troubles, text)
}

// content fails the test if the browser has complained.
func (b *browser) content() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.troubles) > 0 {
		b.Errorf("the browser complains of %q", b.troubles)
	}
}

func (b *browser) does(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatalf("browser: %v; the page has %q", err, b.text())
	}
}

func (b *browser) text() (text string) {
	ctx, end := context.WithTimeout(b.ctx, 5*time.Second)
	defer end()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// becomes waits until an expression is true in the page, or in the one that follows it.
func (b *browser) becomes(expression string) {
	b.Helper()
	var is bool
	for end := time.Now().Add(time.Minute); !is; {
		err := chromedp.Run(b.ctx, chromedp.Evaluate(expression, &is)) // fails between two pages
		if is {
			return
		}
		if time.Now().After(end) || b.ctx.Err() != nil {
			b.Fatalf("never so in the page: %s: %v; it has %q", expression, err, b.text())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// shows waits until the page has a text, without loading it again.
func (b *browser) shows(text string) {
	b.Helper()
	b.becomes(`document.body.innerText.includes(` + quoteJS(text) + `)`)
}

// focuses puts the focus on an element, by a script of the page: chromedp asks for a node and then
// for its focus, and between the two another page may have come.
func (b *browser) focuses(selector string) {
	b.Helper()
	b.becomes(`(e => { e?.focus(); return e !== null && e === document.activeElement })(document.querySelector(` +
		quoteJS(selector) + `))`)
}

func quoteJS(text string) string { return "`" + strings.ReplaceAll(text, `\`, `\\`) + "`" }

// is fails the test unless an expression is true in the page, whose scripts are at rest: a page is
// shown before its scripts have run, on a busy machine long before.
func (b *browser) is(expression string) {
	b.Helper()
	var is bool
	b.does(chromedp.Evaluate(expression, &is))
	if !is {
		b.Errorf("not so in the page: %s", expression)
	}
}
