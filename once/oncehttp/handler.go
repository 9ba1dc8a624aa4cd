package oncehttp

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
	retryAfter     = 1 // seconds
	mostUnpacked   = 64 << 20
)

var errTooLarge = errors.New("oncehttp: the response is larger than can be kept")

// Handlers wraps handlers so that a request is done once.
type Handlers struct {
	once *once.Once
	cfg  Config
}

// New returns Handlers on o. It returns lease.ErrConfig if cfg does not say whose the keys are: see
// Config.Tenant.
func New(o *once.Once, cfg *Config) (*Handlers, error) {
	if o == nil {
		return nil, fmt.Errorf("%w: oncehttp.New needs a *once.Once", lease.ErrConfig)
	}
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Handlers{o, c}, nil
}

// Wrap returns a handler that runs next once per key.
func (h *Handlers) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := parseKey(r.Header.Values(keyHeader))
		switch {
		case errors.Is(err, errNoKey) && h.cfg.Optional:
			next.ServeHTTP(w, r)
			return
		case err != nil:
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		if r.MultipartForm != nil {
			problem(w, http.StatusInternalServerError, "a handler around Wrap has read this multipart form, whose "+
				"files would not tell a repeat from another request: read it within Wrap")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
		if err != nil {
			unread(w, err, h.cfg.MaxBody)
			return
		}
		h.serve(w, r, key, body, next)
	})
}

func unread(w http.ResponseWriter, err error, limit int64) {
	if errors.As(err, new(*http.MaxBytesError)) {
		problem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", limit))
		return
	}
	problem(w, http.StatusBadRequest, "the body did not arrive whole")
}

func (h *Handlers) serve(w http.ResponseWriter, r *http.Request, key string, body []byte, next http.Handler) {
	d := deed{h: h, r: r, body: body, next: next}
	asked := d.request(r.Context()) // its own too: from r, read to its end, the form would be empty
	defer d.tidy(asked)
	tenant, ok := ownerOf(h.cfg.Tenant(asked))
	if !ok {
		problem(w, http.StatusForbidden, "an Idempotency-Key belongs to an account, and this request has none")
		return
	}
	req := once.Request{Tenant: tenant, Key: key, Fingerprint: fingerprint(r, body)}
	if h.cfg.Lock != nil {
		l, err := h.cfg.Lock(r.Context(), asked)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		if !isnil.Value(l) { // nor a nil *rowlock.Lock
			req.Lock = l
		}
	}
	res, err := h.do(r.Context(), req, d.do)
	switch {
	case err == nil && res.Replayed:
		h.replay(w, r, res.Value)
	case err == nil, errors.Is(err, errNotKept):
		send(w, d.answer)
	case d.answer.Status >= 400 && !elsewhere(err):
		send(w, d.answer) // the handler has answered for a rollback, or a failed statement
	default:
		h.refuse(w, r, err)
	}
}

// do unlocks before the response is sent: a client that does not read would keep the key otherwise,
// and one that does could find it locked by its own last request.
func (h *Handlers) do(ctx context.Context, req once.Request, f once.Func) (once.Result, error) {
	if l, ok := req.Lock.(Lock); ok {
		// Its error says what became of the lock, whose client counts it; the request is done.
		defer func() { _ = l.Unlock(ctx) }()
	}
	return h.once.Do(ctx, req, f)
}

// elsewhere reports whether the outcome of the request no longer depends on the run that has
// answered it.
func elsewhere(err error) bool {
	return errors.Is(err, lease.ErrUnknown) || errors.Is(err, once.ErrInFlight) || errors.Is(err, once.ErrMismatch)
}

// errNotKept rolls back a response whose status is not kept.
var errNotKept = errors.New("oncehttp: the response is not kept")

// deed is one request to be done.
type deed struct {
	h      *Handlers
	r      *http.Request
	body   []byte
	next   http.Handler
	answer stored // of the last run
}

// do runs the handler, in a context that outlives the client, so that a repeat finds the work
// finished.
func (d *deed) do(ctx context.Context, tx *sql.Tx) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.h.cfg.Finish)
	defer cancel()
	in := &work{tx: tx}
	r := d.request(context.WithValue(ctx, workKey{}, in))
	defer d.tidy(r)
	rec := newRecorder(d.h.once.MaxResult())
	d.next.ServeHTTP(rec, r)
	d.answer = stored{} // an earlier run's
	if rec.over {
		return nil, oneline.Join(errTooLarge, in.failure())
	}
	d.answer = rec.finish()
	if d.r.Method != http.MethodHead { // else it is that of what is left out
		d.answer.Header.Del("Content-Length")
	}
	if err := in.failure(); err != nil {
		return nil, err
	}
	if !d.keeps(in) {
		return nil, errNotKept
	}
	kept := d.answer
	kept.Header = keep(kept.Header)
	return kept.encode()
}

// keeps reports whether the answer of a run is kept. Unless the Config says, a refusal by a handler
// that has not asked for the transaction is not: it has changed nothing, and a client could fill
// the table with refusals.
func (d *deed) keeps(in *work) bool {
	status := d.answer.Status
	if d.h.cfg.Keep != nil {
		return d.h.cfg.Keep(status)
	}
	return lasting(status) && (status < http.StatusBadRequest || in.asked.Load())
}

// request is one reader's own, without what another made of the headers, the URL or the form.
func (d *deed) request(ctx context.Context) *http.Request {
	r := d.r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(d.body))
	return r
}

// tidy removes the files of a form that the handler has read, as net/http does for its own request.
func (d *deed) tidy(r *http.Request) {
	if r.MultipartForm != nil && d.r.MultipartForm == nil {
		_ = r.MultipartForm.RemoveAll()
	}
}

// added are the headers of which a handler around this one may have its own, which must not be
// lost: its session, and those by which a cache tells answers apart. For the others the innermost
// handler decides.
var added = map[string]bool{"Set-Cookie": true, "Vary": true}

func send(w http.ResponseWriter, s stored) {
	for name, values := range s.Header {
		if added[http.CanonicalHeaderKey(name)] {
			values = append(w.Header()[name], values...)
		}
		w.Header()[name] = values
	}
	// net/http knows the length of an empty body, and the answer to HEAD has that of another's.
	if len(s.Body) > 0 && s.Status != http.StatusNoContent && s.Status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(s.Body)))
	}
	w.WriteHeader(s.Status)
	_, _ = w.Write(s.Body)
}

func (h *Handlers) replay(w http.ResponseWriter, r *http.Request, value []byte) {
	s, err := decode(value)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	s, ok := s.readable(r, mostUnpacked)
	if !ok {
		problem(w, http.StatusNotAcceptable, "the response is kept in the content coding "+
			strconv.Quote(s.coding())+": repeat with an Accept-Encoding that has it")
		return
	}
	w.Header().Set(replayedHeader, "true")
	send(w, s)
}

// refuse answers for an error of package once.
func (h *Handlers) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var flight *once.InFlightError
	switch {
	case errors.Is(err, once.ErrMismatch):
		problem(w, http.StatusUnprocessableEntity, "this Idempotency-Key was used for another request: take a new one")
	case errors.As(err, &flight) && !errors.Is(err, lease.ErrUnknown):
		retry(w, http.StatusConflict, flight.RetryAfter,
			"the first request with this Idempotency-Key is still in flight: repeat it later")
	case errors.Is(err, lease.ErrHeld):
		retry(w, http.StatusConflict, retryAfter*time.Second,
			"another request has what this one needs: repeat it later with the same Idempotency-Key")
	case errors.Is(err, once.ErrTenantFull):
		retry(w, http.StatusTooManyRequests, time.Minute,
			"this account has too many answers stored: repeat it later with the same Idempotency-Key")
	case errors.Is(err, lease.ErrInvalidKey):
		problem(w, http.StatusBadRequest, "the Idempotency-Key or its tenant cannot be used")
	case oneline.Is(err, errTooLarge, once.ErrResultTooLarge, lease.ErrCorrupt, lease.ErrConfig):
		h.complain(r, err)
		problem(w, http.StatusInternalServerError,
			"the response cannot be kept or was not kept as a response; nothing was done now")
	default:
		h.complain(r, err)
		retry(w, http.StatusServiceUnavailable, retryAfter*time.Second,
			"the request may not have been done: repeat it with the same Idempotency-Key")
	}
}

func (h *Handlers) complain(r *http.Request, err error) {
	h.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "rowlock: a request that is to be done once",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
}
