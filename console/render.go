package console

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"key": keytext.Show, "plain": plain, "span": span, "placement": shown.Placement, "seconds": seconds,
	"identity": identity, "note": note, "keylink": keyLink, "who": whoLink, "full": full, "gone": gone,
	"kind": kind, "utc": utc, "stamp": stamp, "reason": reason, "tab": tabOf,
	"dots": func(n int) string { return strings.Repeat("●", min(n, mostDots)) },
	"add":  func(a, b int) int { return a + b },
}).ParseFS(web, "web/*.html"))

// part is what the template of a view gets.
type part struct {
	Data any
	View view
}

// render returns the part of a page that refreshes itself.
func render(name string, data any, v view) ([]byte, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, part{data, v})
	return b.Bytes(), err
}

// mostDots is how long a queue is drawn.
const mostDots = 12

// plain shows a text that any program chose: no more than a client writes, and nothing in it that
// does not print.
func plain(text string) string {
	if len(text) > lease.MaxStoredNote {
		text = text[:lease.MaxStoredNote] + "…"
	}
	return keytext.Show(strings.ToValidUTF8(text, "�"))
}

func reason(text string) string { return keytext.Show(strings.ToValidUTF8(text, "�")) }

// tab is a link to a page.
type tab struct {
	To, Name string
	Here     bool
}

func tabOf(p whole, page, to, name string) tab { return tab{To: to, Name: name, Here: p.Page == page} }

func identity(stored string) string {
	who, _ := lease.SplitNote(stored)
	return cmp.Or(plain(who), "(no name)")
}

func note(stored string) string {
	_, text := lease.SplitNote(stored)
	return plain(text)
}

// span shows a duration in two units at most: 12 s, 4 m 05 s, 3 h 07 m, 12 d 04 h. console.js does
// the same.
func span(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// seconds is a duration for console.js.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(max(0, d.Seconds()), 'f', 1, 64)
}

// full is the length of a whole bar. A row does not say its TTL: 30 s is the default.
func full(d time.Duration) string { return seconds(max(d, 30*time.Second)) }

func gone(d time.Duration) string { return span(-d) }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// stamp is a time for programs.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func keyLink(key string) string { return view{page: pageKey, key: key}.link() }

// whoLink leads to what an identity holds and waits for.
func whoLink(identity string) string {
	return view{page: pageProcess, order: shown.ByKey, key: identity}.link()
}

// kind says what a waiter is, and how many calls of it are known of.
func kind(w shown.Waiter) string {
	switch {
	case w.Queued:
		return "in the queue"
	case w.Processes > 1:
		return fmt.Sprintf("%d processes of this name", w.Processes)
	}
	return "process, in no order"
}

// trouble says in one line of text why nothing can be read.
func trouble(err error) string {
	what := "The database does not answer"
	switch {
	case errors.Is(err, lease.ErrNoSchema):
		what = "The tables are missing"
	case errors.Is(err, lease.ErrSchemaVersion):
		what = "The tables are of another version"
	case errors.Is(err, lease.ErrClosed):
		what = "The client was closed"
	case errors.Is(err, lease.ErrPrivilege):
		what = "The database user may not read this"
	case errors.Is(err, errCheck):
		return oneLine(err) + ". Reload this page to check again."
	case errors.Is(err, lease.ErrCorrupt):
		what = "A row has what rowlock never writes"
	case errors.Is(err, shown.ErrRefused), errors.Is(err, errBusy):
		what = "This cannot be read"
	}
	return what + ". This page tries again by itself. " + oneLine(err)
}

// oneLine is an error as text for a viewer.
func oneLine(err error) string {
	var b strings.Builder
	for n, r := range []rune(keytext.Error(err)) {
		switch {
		case n == mostError:
			return b.String() + "…"
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}

// mostError is how much of an error is shown, in characters.
const mostError = 300
