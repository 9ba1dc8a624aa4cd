package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

func TestForcedReleaseInABrowserDeposesAProcess(t *testing.T) {
	each(t, func(b *bed) {
		key := `stuck <b>\xff`
		holder := b.command("run", key, "--ttl", "6s", "--note", "nightly import", "--", "sleep", "300")
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- holder.Wait() }()
		w := b.opens("--write").browses()
		w.shows(key)
		w.shows("nightly import")
		w.becomes(`!location.search`)
		w.showsTheTable()
		b.holdsSome(w)
		w.does(chromedp.Click(`//a[contains(., "stuck")]`, chromedp.BySearch),
			chromedp.WaitVisible("#release"))
		w.becomes(`document.querySelector("#release button").disabled`)
		w.does(chromedp.SendKeys("#confirm", "stuck"))
		w.is(`document.querySelector("#release button").disabled`)
		w.does(chromedp.SendKeys("#confirm", key[len("stuck"):]),
			chromedp.SendKeys("#reason", "the import hangs"))
		w.becomes(`!document.querySelector("#release button").disabled`)
		w.does(chromedp.Click("#release button"), chromedp.WaitVisible(".done"))
		w.shows("the import hangs")
		select {
		case <-ended:
			if code := holder.ProcessState.ExitCode(); code != exitLost {
				t.Errorf("rowlock run ends with %d, want %d", code, exitLost)
			}
		case <-time.After(time.Minute):
			t.Error("rowlock run goes on")
			_ = holder.Process.Kill()
			<-ended
		}
		w.content()
	})
}

// exitLost is the exit code of run when its lock is lost.
const exitLost = 121

// showsTheTable compares the page with what the program lists.
func (b *browser) showsTheTable() {
	b.Helper()
	var shown []string
	b.does(chromedp.Evaluate(`[...document.querySelectorAll("#live tbody tr")].map((r) =>
		[r.cells[0], r.cells[1], r.cells[5], r.cells[6]].map((c) => c.textContent).join("|"))`, &shown))
	if want := b.listed(); !slices.Equal(shown, want) {
		b.Errorf("the page shows %q, the table has %q", shown, want)
	}
}

// listed is what the page must show, read by the test itself.
func (b *bed) listed() (all []string) {
	b.Helper()
	rows, err := b.DB.QueryContext(b.Context(),
		b.SQL(`SELECT {key}, note, token FROM {rowlock} WHERE owner IS NOT NULL ORDER BY {key}`))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key []byte
		var stored, token string
		if err := rows.Scan(&key, &stored, &token); err != nil {
			b.Fatal(err)
		}
		identity, note := lease.SplitNote(stored)
		all = append(all, strings.Join([]string{keytext.Show(string(key)), identity, note, token}, "|"))
	}
	return all
}

// holdsSome takes and releases a key while the page is open: it must follow by itself, and leave
// the focus where it is.
func (b *bed) holdsSome(w *browser) {
	b.Helper()
	w.focuses(`#live tbody a`)
	c := b.holds()
	l, err := c.Lock(b.Context(), "came later", rowlock.Note("seen live"))
	if err != nil {
		b.Fatal(err)
	}
	w.shows("seen live")
	w.becomes(`document.activeElement.closest("#live") !== null`)
	w.becomes(`document.getElementById("status").textContent === "Live"`)
	if err := l.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.becomes(`!document.body.innerText.includes("seen live")`)
	w.becomes(`document.activeElement.closest("#live") !== null`)
	w.becomes(`document.querySelector("progress").value > 0`)
}
