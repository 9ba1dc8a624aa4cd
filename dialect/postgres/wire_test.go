package postgres_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

type silentTracer struct{}

func (silentTracer) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	return ctx
}
func (silentTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A tracer or a wrapper is to see every statement.
func TestWhichSessionsGoBelowDatabaseSQL(t *testing.T) {
	dsn := testdb.Kinds[1].DSN(t)
	plain, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	traced, cancels := plain.Copy(), plain.Copy()
	traced.Tracer = silentTracer{}
	cancels.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}
	}
	faulty, err := faultdb.Open("pgx", dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		pool          *sql.DB
		wire, limited bool
	}{
		"pgx":                    {stdlib.OpenDB(*plain), true, true},
		"pgx with a tracer":      {stdlib.OpenDB(*traced), false, false},
		"pgx that sends cancels": {stdlib.OpenDB(*cancels), false, false},
		"a wrapper that lets it": {faulty, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer one.pool.Close()
			pinned, err := one.pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := conn.NewSession(pinned)
			defer s.Discard()
			if err := sqlstore.Of(postgres.New()).Setup(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if (s.Wire != nil) != one.wire || (s.Limit != nil) != one.limited {
				t.Errorf("wire %t, deadline %t", s.Wire != nil, s.Limit != nil)
			}
		})
	}
}

// What is sent and read in binary or as text arrives as it is.
func TestTheWireCarriesEveryTypeThatTheStatementsHave(t *testing.T) {
	pool, err := sql.Open("pgx", testdb.Kinds[1].DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pinned, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	defer s.Discard()
	if err := sqlstore.Of(postgres.New()).Setup(t.Context(), s); err != nil || s.Wire == nil {
		t.Fatal("no wire", err)
	}
	var n, four, two, numeric int64
	var truth, no bool
	var text string
	var bytes, null []byte
	err = s.QueryRow(t.Context(), `SELECT $1::bigint, $2::int, $3::smallint, $4::bool, $5::bool,
			$6::text, $7::bytea, $8::bytea, ($9::text)::numeric`,
		[]any{int64(-1 << 62), -7, -3, true, false, "", []byte("\x00\xff"), nil, "12"},
		&n, &four, &two, &truth, &no, &text, &bytes, &null, &numeric)
	if err != nil {
		t.Fatal(err)
	}
	if n != -1<<62 || four != -7 || two != -3 || !truth || no || text != "" ||
		string(bytes) != "\x00\xff" || null != nil || numeric != 12 {
		t.Error(n, four, two, truth, no, text, bytes, null, numeric)
	}
	if err := s.QueryRow(t.Context(), `SELECT NULL::bigint`, nil, &n); err == nil {
		t.Error("NULL was read as a number")
	}
	if err := s.QueryRow(t.Context(), `SELECT 1::bigint`, nil, &text); err == nil {
		t.Error("a number was read as text")
	}
}
