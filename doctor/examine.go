package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Examine makes the checks one after the other, on one connection of db at a time and for a moment
// on a second one. It locks no key of yours. The check "open" does what rowlock.Open does, which
// runs every kind of statement on a key of its own and removes it, and begins an era where a client
// would. All other checks only read.
//
// The error wraps lease.ErrConfig for bad arguments. It wraps lease.ErrUnknown if the database
// cannot be reached, or is gone before the end; the report then has the findings until then. ctx
// bounds the call, and each check takes Options.Limit at most.
func Examine(ctx context.Context, db dialect.DB, d dialect.Dialect, o *Options) (*Report, error) {
	x, err := newExaminer(ctx, db, d, o)
	if err != nil {
		return nil, err
	}
	defer x.leave()
	return x.examine(ctx)
}

func newExaminer(ctx context.Context, db dialect.DB, d dialect.Dialect, o *Options) (*examiner, error) {
	if err := isnil.Context("doctor.Examine", ctx); err != nil {
		return nil, err
	}
	switch {
	case isnil.Value(db):
		return nil, fmt.Errorf("%w: doctor.Examine: the database is nil", lease.ErrConfig)
	case isnil.Value(d):
		return nil, fmt.Errorf("%w: doctor.Examine: the dialect is nil", lease.ErrConfig)
	}
	of := sqlstore.Of(d)
	if err := of.CheckNames(); err != nil {
		return nil, err
	}
	full, err := o.filled(of.OneWriter)
	if err := cmp.Or(err, full.checkIDs()); err != nil {
		return nil, err
	}
	text, _ := files.ReadFile(of.Name() + ".sql") // there is one for each dialect
	return &examiner{pool: db, d: of, text: of.Parse(string(text)), o: full, now: time.Now}, nil
}

func (x *examiner) examine(ctx context.Context) (*Report, error) {
	r := &Report{Dialect: x.d.Name(), At: x.now().UTC(), Findings: []Finding{}}
	if err := x.look(ctx); err != nil {
		return r, err
	}
	r.Server = x.product
	for _, c := range checks {
		if !x.o.wants(c, x.d.Name()) {
			continue
		}
		f, err := x.make(ctx, c)
		if ctx.Err() != nil || x.gone != nil {
			r.sort()
			return r, oneline.Join(x.gone, ctx.Err())
		}
		if err != nil {
			f = x.unchecked(c, err)
		}
		x.name(f.Cure)
		r.add(f)
	}
	r.sort()
	return r, nil
}

func (x *examiner) make(ctx context.Context, c check) (Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, x.o.Limit)
	defer cancel()
	f, err := c.run(ctx, x)
	f.ID, f.Checked = c.id, true
	if err != nil {
		x.leave() // its session may be in a transaction that has failed
	}
	return f, err
}

// name puts the user's name into each GRANT.
func (x *examiner) name(cures []string) {
	for i, cure := range cures {
		if strings.HasPrefix(cure, "GRANT ") {
			cures[i] = strings.Replace(cure, " TO the user", " TO "+x.user, 1)
		}
	}
}

// unchecked is the finding of a check that could not be made.
func (x *examiner) unchecked(c check, err error) Finding {
	f := Finding{ID: c.id, Severity: Warning}
	as := sqlstore.Judge(x.d, err).As
	why := keytext.Error(err)
	switch {
	case errors.Is(as, lease.ErrPrivilege), errors.Is(err, lease.ErrPrivilege):
		f.Severity = Info
		why = "the user may not read it"
		f.Cure = []string{cmp.Or(c.grant[x.d.Name()], "see the check privileges")}
	case errors.Is(as, lease.ErrNoSchema), errors.Is(as, lease.ErrSchemaVersion),
		errors.Is(err, lease.ErrNoSchema):
		f.Severity, why = Info, "a table or a column is missing"
		f.Cure = []string{"see the checks schema and tables"}
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it took longer than %s", x.o.Limit)
		f.Cure = []string{"examine when the server has less to do, or with a longer limit"}
	default:
		f.Cure = []string{"see the error that the database returned"}
	}
	f.Summary = "could not be checked: " + why
	f.saw("error", keytext.Error(err), "the database")
	return f
}
