package refusal

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/ports"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Pgpool-II keeps a session for each client, as a server does. It may send a read to a standby,
// where a lock that is held looks free.
func TestOpenRefusesPgpool(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		for name, start := range map[string]func(*servertest.Scene) (address string){
			"the real one": pgpool,
			"one that answers as it does": func(s *servertest.Scene) string {
				return between(s, "4.3.5 (tamahomeboshi)")
			},
		} {
			s.Part(name, func(s *servertest.Scene) {
				address := start(s)
				for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
					db := s.Dial("pgx", through(s, address, mode))
					for _, options := range [][]dialect.Option{nil, {postgres.Pooled()}} {
						d := postgres.New(append(options, dialect.Prefix(s.Env.Dialect.Names().Prefix))...)
						refused(s, db, d, rowlock.ErrTopology, "Pgpool-II 4.", "to the primary directly")
					}
				}
			})
		}
	})
}

// through is the scene's DSN by way of another address.
func through(s *servertest.Scene, address, mode string) string {
	u, err := url.Parse(s.Env.Source)
	s.OK(err)
	u.Host = address
	q := u.Query()
	q.Set("default_query_exec_mode", mode)
	u.RawQuery = q.Encode()
	return u.String()
}

// pgpool starts one before the scene's server, which is all that it has.
func pgpool(s *servertest.Scene) (address string) {
	s.Helper()
	program, err := exec.LookPath("pgpool")
	if err != nil {
		s.Skip("SKIPPED, NOT TESTED: no Pgpool-II here (package pgpool2)")
	}
	free, err := ports.Free(2)
	s.OK(err)
	server, err := url.Parse(s.Env.Source)
	s.OK(err)
	_, port, err := net.SplitHostPort(free[0])
	s.OK(err)
	_, control, err := net.SplitHostPort(free[1])
	s.OK(err)
	dir, err := os.MkdirTemp("", "pgpool") // t.TempDir is too long for a socket
	s.OK(err)
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "conf")
	s.OK(os.WriteFile(file, fmt.Appendf(nil, `
backend_clustering_mode = 'streaming_replication'
backend_hostname0 = '%s'
backend_port0 = %s
backend_flag0 = 'ALWAYS_PRIMARY'
listen_addresses = '127.0.0.1'
port = %s
pcp_listen_addresses = ''
pcp_port = %s
unix_socket_directories = '%[5]s'
pcp_socket_dir = '%[5]s'
pid_file_name = '%[5]s/pid'
logdir = '%[5]s'
sr_check_period = 0
num_init_children = 8
`, server.Hostname(), server.Port(), port, control, dir), 0o600))
	cmd := exec.Command(program, "-n", "-f", file, "-a", os.DevNull, "-F", os.DevNull)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = servertest.Patience // a child that is left over has its output
	s.OK(cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it ends its children
		if _ = cmd.Wait(); s.Failed() {
			s.Logf("Pgpool-II said:\n%s", said.Bytes())
		}
	})
	db := s.Dial("pgx", through(s, free[0], "exec"))
	s.Eventually("Pgpool-II to take connections", func() bool { return db.PingContext(s.Context()) == nil })
	s.OK(db.Close()) // it has few connections
	return free[0]
}

// between is a proxy before the scene's server that copies, and answers one question by itself.
func between(s *servertest.Scene, version string) (address string) {
	s.Helper()
	server, err := url.Parse(s.Env.Source)
	s.OK(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	var all sync.WaitGroup
	s.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { relay(client, server.Host, version) })
		}
	})
	return l.Addr().String()
}

func relay(client net.Conn, server, version string) {
	defer client.Close()
	behind, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer behind.Close()
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(client, behind)
		_ = client.Close()
	}()
	defer func() { _ = behind.Close(); <-answers }()
	for message := make([]byte, 1<<16); ; {
		n, err := client.Read(message)
		if err != nil {
			return
		}
		to, text := behind, message[:n]
		if isQuestion(text) {
			to, text = client, versionAnswer(version)
		}
		if _, err := to.Write(text); err != nil {
			return
		}
	}
}

// isQuestion reports whether a client asks by the simple protocol. It waits for the answer, so that
// nothing else comes with it.
func isQuestion(message []byte) bool {
	return message[0] == 'Q' && bytes.Contains(message, []byte("pool_version"))
}

func versionAnswer(version string) (encoded []byte) {
	for _, m := range []pgproto3.BackendMessage{
		&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{
			Name: []byte("pool_version"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1,
		}}},
		&pgproto3.DataRow{Values: [][]byte{[]byte(version)}},
		&pgproto3.CommandComplete{CommandTag: []byte("SELECT")},
		&pgproto3.ReadyForQuery{TxStatus: 'I'},
	} {
		encoded, _ = m.Encode(encoded)
	}
	return encoded
}
