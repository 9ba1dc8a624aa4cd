//go:build linux

package fight

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

// passing is a section whose COMMIT may hand its key over. Its ctx is that of all statements of its
// transaction, so that those of rowlock's own connections, which have hand-overs too, are not taken
// for them.
type passing struct {
	fate fate                     // of its COMMIT
	on   atomic.Pointer[pgx.Conn] // of its transaction; nil before its first statement
	sent atomic.Bool              // the hand-over, in the transaction that was begun last
}

type passingKey struct{}

func (p *passing) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, passingKey{}, p)
}

// begin is for each transaction.
func (p *passing) begin(f fate) {
	p.fate = f
	p.on.Store(nil)
	p.sent.Store(false)
}

// tracer sees each statement before it is sent.
type tracer struct{}

var _ interface {
	pgx.QueryTracer
	pgx.BatchTracer
} = tracer{}

// TraceQueryStart notes it.
func (tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	note(ctx, conn, data.SQL)
	return ctx
}

// TraceQueryEnd does nothing.
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart notes what is sent together.
func (tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		note(ctx, conn, q.SQL)
	}
	return ctx
}

// TraceBatchQuery does nothing.
func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// note finds the connection of a section by what its function writes, and what follows on it.
func note(ctx context.Context, conn *pgx.Conn, query string) {
	p, _ := ctx.Value(passingKey{}).(*passing)
	switch {
	case p == nil:
	case strings.Contains(query, "counter"):
		p.on.Store(conn)
	case p.on.Load() != conn:
	case strings.Contains(query, "/* rowlock hand-over */"):
		p.sent.Store(true)
	case strings.EqualFold(query, "commit"):
		if l, ok := conn.PgConn().Conn().(*line); ok {
			l.next.Store(int32(p.fate))
		}
	}
}

// pgxConnections is how many of a worker's connections are of pgx's own pool.
const pgxConnections = 4

// openPgx opens the pool of the sections that use pgx itself.
func (w *worker) openPgx(open *closers) error {
	if w.Database.Name != "postgres" {
		return nil
	}
	cfg, err := pgxpool.ParseConfig(w.Database.DSN)
	if err != nil {
		return err
	}
	cfg.MaxConns = pgxConnections
	traced(cfg.ConnConfig)
	if w.pgx, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		return err
	}
	*open = append(*open, func() error { w.pgx.Close(); return nil })
	return nil
}

// traced has a connection of cfg tell of its statements, and cut COMMITs off.
func traced(cfg *pgx.ConnConfig) {
	cfg.Tracer = tracer{}
	cfg.DialFunc = cut(cfg.DialFunc)
}

// pgxItself is on PostgreSQL alone.
func pgxItself(
	ctx context.Context, h *hand, key string, f func(ctx context.Context, tx inTx) error, opts ...rowlock.Option,
) error {
	return postgres.DoTx(ctx, h.client, h.pgx, key, func(ctx context.Context, tx pgx.Tx) error {
		return f(ctx, pgxTx{tx})
	}, opts...)
}

type pgxTx struct{ tx pgx.Tx }

func (t pgxTx) read(ctx context.Context, to *int64, query string, args ...any) error {
	return t.tx.QueryRow(ctx, query, args...).Scan(to)
}

func (t pgxTx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.tx.Exec(ctx, query, args...)
	return err
}
