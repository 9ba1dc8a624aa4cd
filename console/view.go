package console

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// Pages.
const (
	pageHeld    = "held"
	pageWaits   = "waits"
	pageCycles  = "cycles"
	pageRecords = "records"
	pageKey     = "key"
	pageProcess = "process"
	// pageFindings does not refresh itself.
	pageFindings = "findings"
)

var titles = map[string]string{
	pageHeld: "Held keys", pageWaits: "Hot keys", pageCycles: "Cycles", pageRecords: "Forced releases",
	pageKey: "Key", pageProcess: "Process", pageFindings: "Findings",
}

// perPage is how many rows a page has.
const perPage = 50

// view is what a viewer looks at. Viewers of equal views share what is read for them.
type view struct {
	page   string
	prefix string
	order  shown.Order
	after  string
	time   int64
	key    string // of pageProcess, an identity
}

// maxText is longer than any key as text.
const maxText = 4*lease.MaxKey + 1

// parse reads a view from a query. Its error is for the viewer.
func parse(page string, q url.Values) (v view, err error) {
	v = view{page: page, order: shown.ByKey}
	for _, name := range []string{"prefix", "after", "k"} {
		if len(q.Get(name)) > maxText {
			return v, fmt.Errorf("%w: %s has %d bytes; no key is so long", lease.ErrInvalidKey, name,
				len(q.Get(name)))
		}
	}
	if page == pageProcess {
		v.key, err = keytext.Prefix(q.Get("k"))
		if err == nil && (len(v.key) > lease.MaxIdentity || !utf8.ValidString(v.key) || strings.Contains(v.key, "\x00")) {
			err = fmt.Errorf("%w: k is no identity", lease.ErrConfig)
		}
		return v, err
	}
	if page == pageKey {
		v.key, err = keytext.Read(cmp.Or(q.Get("k"), q.Get("prefix"))) // of the one search field
		return v, err
	}
	if page == pageCycles || page == pageFindings {
		return v, nil
	}
	if v.prefix, err = begins("prefix", q); err != nil || page != pageHeld {
		return v, err
	}
	if v.after, err = begins("after", q); err != nil {
		return v, err
	}
	return v.ordered(q)
}

func begins(name string, q url.Values) (string, error) {
	text, err := keytext.Prefix(q.Get(name))
	if err == nil && len(text) > lease.MaxKey {
		err = fmt.Errorf("%w: %s has %d bytes; a key has at most %d", lease.ErrInvalidKey, name, len(text),
			lease.MaxKey)
	}
	return text, err
}

func (v view) ordered(q url.Values) (view, error) {
	switch o := shown.Order(q.Get("sort")); o {
	case "":
	case shown.ByKey, shown.ByAge, shown.ByExpiry:
		v.order = o
	default:
		return v, fmt.Errorf("%w: sort %.20q: use key, age or expiry", lease.ErrConfig, string(o))
	}
	if at := q.Get("at"); at != "" && v.order != shown.ByKey {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil || n < 0 || n > latest {
			return v, fmt.Errorf("%w: at %.20q is no time", lease.ErrConfig, at)
		}
		v.time = n
	}
	return v, nil
}

// latest is the end of the year 9999, in microseconds: the latest time that every database can
// compute with. Shared keys expire in that year.
const latest = 253_402_300_799_999_999

// link is the address of a view, relative to the console.
func (v view) link() string {
	q := url.Values{}
	set := func(name, text string) {
		if text != "" {
			q.Set(name, text)
		}
	}
	set("prefix", keytext.Show(v.prefix))
	set("after", keytext.Show(v.after))
	set("k", keytext.Show(v.key))
	if v.order != shown.ByKey && v.page == pageHeld {
		set("sort", string(v.order))
	}
	if v.time > 0 {
		set("at", strconv.FormatInt(v.time, 10))
	}
	path := v.page
	if path == pageHeld {
		path = "./"
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// The methods below are for templates.

// Events is the address of the view's stream; "" if there is none, or the view could not be read.
func (v view) Events() string {
	if titles[v.page] == "" || v.page == pageFindings || (v.page == pageKey || v.page == pageProcess) && v.key == "" {
		return ""
	}
	_, query, _ := strings.Cut(v.link(), "?")
	return "events?page=" + v.page + "&" + query
}

// Search is the page that searches by prefix: this one, if it can.
func (v view) Search() string {
	if v.page == pageWaits || v.page == pageRecords {
		return v.page
	}
	return "./"
}

// Prefix is that of the view's keys, as text.
func (v view) Prefix() string { return keytext.Show(v.prefix) }

// Sort is the order; ByKey is the one without asking.
func (v view) Sort() string { return string(v.order) }

// After reports whether this is not the first page.
func (v view) After() bool { return v.after != "" }

// Sorted is the address of the first page in another order.
func (v view) Sorted(order string) string {
	v.order, v.after, v.time = shown.Order(order), "", 0
	return v.link()
}

// First is the address of the first page.
func (v view) First() string { return v.Sorted(string(v.order)) }

// Next is the address of the page after a row.
func (v view) Next(last *shown.Row) string {
	v.after, v.time = last.Key, last.Time
	if v.order == shown.ByKey {
		v.time = 0
	}
	return v.link()
}
