package console

import (
	"bytes"
	"html/template"
	"net/http"
	"time"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

// whole is what a page's template gets.
type whole struct {
	heading
	Page    string
	Part    template.HTML
	Trouble string
	AsOf    time.Time
	Lag     time.Duration // since AsOf
	Form    *form
	Done    *lease.Forced // what this viewer has just done
}

// heading is what stands around every page: its title, and what its menu leads to.
type heading struct {
	Title, Prefix string
	View          view
	Database      bool
	Checks        bool // there is a page of findings
	Who           string
}

// show serves a page.
func (c *Console) show(page string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := parse(page, r.URL.Query())
		if err != nil {
			c.write(w, r, http.StatusBadRequest, whole{Page: page, Trouble: oneLine(err)}, view{page: page})
			return
		}
		p, data := c.look(r, v)
		if k, ok := data.(keyPage); ok {
			p.Done = k.done(r.URL.Query().Get("done"), viewer(r))
			if k.Takes() != 0 {
				p.Form = &form{Key: v.key, Token: k.Takes()}
			}
		}
		code := http.StatusOK
		if p.Trouble != "" {
			code = http.StatusServiceUnavailable
		}
		c.write(w, r, code, p, v)
	})
}

// done returns the latest forced release of the key if it has this id and is the viewer's, or nil:
// a link that names another, or none, says nothing.
func (p keyPage) done(id, who string) *lease.Forced {
	if len(p.Forced) == 0 || p.Forced[0].ID.String() != id || p.Forced[0].By != who {
		return nil
	}
	return &p.Forced[0]
}

// look reads a view for a page.
func (c *Console) look(r *http.Request, v view) (whole, any) {
	f := c.feed.get(r.Context(), v)
	p := whole{Page: v.page, Part: template.HTML(f.html), AsOf: f.asOf} //nolint:gosec // it is escaped
	if f.err != nil {
		p.Trouble = trouble(f.err)
	}
	return p, f.data
}

func (c *Console) write(w http.ResponseWriter, r *http.Request, code int, p whole, v view) {
	p.heading = heading{
		Title: titles[p.Page], View: v, Prefix: keytext.Show(v.prefix),
		Database: c.tables != nil, Checks: c.o.Findings != nil, Who: plain(viewer(r)),
	}
	if !p.AsOf.IsZero() {
		p.Lag = time.Since(p.AsOf)
	}
	if v.key != "" {
		p.Title = keytext.Show(v.key)
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "page", p); err != nil {
		c.o.Logger.ErrorContext(r.Context(), "rowlock: console: page not shown", "error", err)
		http.Error(w, "rowlock: the page cannot be shown; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}
