package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// form takes a key from its holder.
type form struct {
	Key             string
	Token           lease.Token
	Confirm, Reason string
	Error           string
}

// releasing bounds a forced release, which waits for a fenced transaction of the holder.
const releasing = 20 * time.Second

func (c *Console) release(w http.ResponseWriter, r *http.Request) {
	if !c.o.Write {
		c.refuse(w, r, "this console only shows: Options.Write is not set", nil)
		return
	}
	f, err := readForm(r)
	if err != nil {
		http.Error(w, "rowlock: "+err.Error(), http.StatusBadRequest)
		return
	}
	code := http.StatusUnprocessableEntity
	if f.Error = f.check(); f.Error == "" {
		var done lease.Forced
		if done, code, err = c.take(r, f); err == nil {
			q := url.Values{"k": {keytext.Show(f.Key)}, "done": {done.ID.String()}}
			// Relative as it is: http.Redirect would make it absolute without the handler's mount point.
			w.Header().Set("Location", "key?"+q.Encode())
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		f.Error = oneLine(err)
	}
	c.again(w, r, code, f)
}

// again shows the page of a key anew, with what was typed and why nothing was changed. If the key
// has another holder by now, the viewer types it anew.
func (c *Console) again(w http.ResponseWriter, r *http.Request, code int, f *form) {
	v := keyView(f.Key)
	c.feed.forget(v)
	p, data := c.look(r, v)
	k, _ := data.(keyPage)
	if k.Takes() == 0 {
		p.Trouble = strings.TrimSpace(f.Error + " " + p.Trouble)
	} else {
		f.Token = k.Takes()
		p.Form = f
	}
	c.write(w, r, code, p, v)
}

func keyView(key string) view { return view{page: pageKey, order: shown.ByKey, key: key} }

// readForm returns what was typed. Its error is of a request that no page of the console sends.
func readForm(r *http.Request) (*form, error) {
	if err := r.ParseForm(); err != nil {
		return nil, errors.New("the form cannot be read")
	}
	key, err := keytext.Read(r.PostForm.Get("key"))
	if err != nil {
		return nil, errors.New("the form names no key")
	}
	var token lease.Token
	if err := token.UnmarshalText([]byte(r.PostForm.Get("token"))); err != nil || token < 1 {
		return nil, errors.New("the form names no token")
	}
	return &form{
		Key: key, Token: token, Confirm: r.PostForm.Get("confirm"),
		Reason: strings.TrimSpace(strings.Map(printed, r.PostForm.Get("reason"))),
	}, nil
}

// printed is a character, or a space for one that does not print.
func printed(r rune) rune {
	if strconv.IsPrint(r) && r != utf8.RuneError {
		return r
	}
	return ' '
}

// check returns what is wrong with the form, or "".
func (f *form) check() string {
	switch {
	case f.Confirm != keytext.Show(f.Key):
		return "Nothing was changed: the key that you typed is not this one. Type it as it is shown."
	case f.Reason == "":
		return "Nothing was changed: give a reason, because the record keeps it."
	}
	return ""
}

// take releases the key. It returns the record, or the status of an answer that has the error.
func (c *Console) take(r *http.Request, f *form) (lease.Forced, int, error) {
	// A viewer who leaves does not undo it: what was begun ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releasing)
	defer cancel()
	by := viewer(r)
	done, err := c.client.ForceRelease(ctx, f.Key,
		rowlock.Force{By: by, Reason: f.Reason, Token: f.Token})
	c.o.Logger.LogAttrs(ctx, slog.LevelInfo, "rowlock: console: forced release",
		slog.String("key", f.Key), slog.Any("token", f.Token), slog.String("by", by),
		slog.String("reason", f.Reason), slog.Any("error", err))
	switch {
	case err == nil:
		c.feed.forget(keyView(f.Key))
		return done, 0, nil
	case errors.Is(err, lease.ErrNotHeld), errors.Is(err, lease.ErrMoved):
		return done, http.StatusConflict, err
	case errors.Is(err, lease.ErrConfig), errors.Is(err, lease.ErrUnsupported):
		return done, http.StatusUnprocessableEntity, err
	}
	return done, http.StatusServiceUnavailable, err
}
