package postgres_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// fakeServer speaks enough of PostgreSQL's protocol to break off wherever a test wants. A statement
// "token 7" returns the row 7, "nothing" returns none, and all else succeeds.
type fakeServer struct {
	// reply sends the answers to the statements of one Sync, if one of them is "token" or "nothing".
	// The connection ends if it returns false.
	reply func(c net.Conn, answers []pgproto3.BackendMessage) bool

	names sync.Map    // of the statements of all sessions, and their texts
	mixed atomic.Bool // a name was that of two texts

	listener net.Listener
	all      sync.WaitGroup
}

func startFake(t *testing.T) *fakeServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{listener: l, reply: func(c net.Conn, answers []pgproto3.BackendMessage) bool {
		return sendAll(c, answers)
	}}
	f.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.all.Go(func() {
				defer c.Close()
				f.serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.all.Wait()
	})
	return f
}

// session is one of rowlock's, with a wire.
func (f *fakeServer) session(t *testing.T) *conn.Session {
	addr := f.listener.Addr().(*net.TCPAddr)
	pool, err := sql.Open("pgx", "postgres://user@127.0.0.1:"+strconv.Itoa(addr.Port)+"/db?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	pinned, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	t.Cleanup(s.Discard)
	if err := sqlstore.Of(postgres.New()).Setup(t.Context(), s); err != nil || s.Wire == nil {
		t.Fatal("no wire", err)
	}
	return s
}

func (f *fakeServer) serve(c net.Conn) {
	b := pgproto3.NewBackend(c, c)
	start, err := b.ReceiveStartupMessage()
	if _, ok := start.(*pgproto3.StartupMessage); !ok || err != nil {
		return // a request to cancel
	}
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	if !sendAll(c, []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}, ready}) {
		return
	}
	prepared := map[string]string{}
	for {
		answers, ours, ok := f.batch(b, prepared)
		reply := f.reply
		if !ours {
			reply = func(c net.Conn, answers []pgproto3.BackendMessage) bool { return sendAll(c, answers) }
		}
		if !ok || !reply(c, append(answers, ready)) {
			return
		}
	}
}

// batch reads up to a Sync, and returns the answers. ours says that it had a statement of a test.
func (f *fakeServer) batch(b *pgproto3.Backend, prepared map[string]string) (
	answers []pgproto3.BackendMessage, ours, ok bool,
) {
	var bound string
	for {
		m, err := b.Receive()
		if err != nil {
			return nil, false, false
		}
		switch m := m.(type) {
		case *pgproto3.Parse:
			prepared[m.Name] = m.Query
			if m.Name != "" {
				if known, _ := f.names.LoadOrStore(m.Name, m.Query); known != m.Query {
					f.mixed.Store(true)
				}
			}
			answers = append(answers, &pgproto3.ParseComplete{})
		case *pgproto3.Describe:
			answers = append(answers, described(m.ObjectType, prepared[m.Name])...)
		case *pgproto3.Bind:
			bound = prepared[m.PreparedStatement]
			answers = append(answers, &pgproto3.BindComplete{})
		case *pgproto3.Execute:
			row, returns := rowOf(bound)
			ours = ours || returns
			if row != nil {
				answers = append(answers, row)
			}
			answers = append(answers, &pgproto3.CommandComplete{CommandTag: []byte("UPDATE 1")})
		case *pgproto3.Query:
			return []pgproto3.BackendMessage{&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")}}, false, true
		case *pgproto3.Sync:
			return answers, ours, true
		case *pgproto3.Terminate:
			return nil, false, false
		}
	}
}

func described(what byte, query string) (answers []pgproto3.BackendMessage) {
	if what == 'S' {
		answers = append(answers, &pgproto3.ParameterDescription{})
	}
	if _, returns := rowOf(query); !returns {
		return append(answers, &pgproto3.NoData{})
	}
	return append(answers, &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
		{Name: []byte("token"), DataTypeOID: pgtype.Int8OID, DataTypeSize: 8, TypeModifier: -1},
	}})
}

// rowOf is the row that a statement returns, if it returns rows at all.
func rowOf(query string) (row *pgproto3.DataRow, returns bool) {
	if strings.HasPrefix(query, "nothing") {
		return nil, true
	}
	n, ok := strings.CutPrefix(query, "token ")
	if !ok {
		return nil, false
	}
	v, err := strconv.ParseUint(n, 10, 64)
	if err != nil {
		panic(err)
	}
	return &pgproto3.DataRow{Values: [][]byte{binary.BigEndian.AppendUint64(nil, v)}}, true
}

func sendAll(c net.Conn, answers []pgproto3.BackendMessage) bool {
	_, err := c.Write(encoded(answers))
	return err == nil
}

func encoded(answers []pgproto3.BackendMessage) (all []byte) {
	for _, a := range answers {
		var err error
		if all, err = a.Encode(all); err != nil {
			panic(err)
		}
	}
	return all
}

// pipe runs statements together and returns the tokens of those that returned one.
func pipe(ctx context.Context, s *conn.Session, queries ...string) (map[string]int64, error) {
	got := map[string]int64{}
	err := s.Pipe(ctx, len(queries),
		func(i int) (string, []conn.Arg) { return queries[i], nil },
		func(i int, row conn.Columns) error {
			var n int64
			err := row.Scan(&n)
			got[queries[i]] = n
			return err
		})
	return got, err
}
