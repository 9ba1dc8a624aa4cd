package standby

import (
	"database/sql"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/rowlockdb/rowlock/internal/ports"
)

// Alone is a MariaDB or MySQL without a replica, for tests of what only a whole server can be set
// to.
type Alone struct {
	DB     *sql.DB // for the test's own questions, as one who may do everything
	Source string  // its DSN

	server *innodb
	made   []string // the options that it needs with its data folder
}

// StartAlone starts a "mariadb" or "mysql" with more options, and stops it with the test. It skips
// as StartReplicated does.
func StartAlone(tb testing.TB, name string, options ...string) *Alone {
	tb.Helper()
	return MakeAlone(tb, name, nil, options...)
}

// MakeAlone is StartAlone on a data folder that is made with options too.
func MakeAlone(tb testing.TB, name string, made []string, options ...string) *Alone {
	tb.Helper()
	s := install(tb, products[name])
	addresses, err := ports.Free(1)
	if err != nil {
		tb.Fatal(err)
	}
	s.number, s.on = 1, addresses[0]
	s.initialize(tb, made...)
	s.start(tb, slices.Concat(made, options)...)
	return &Alone{DB: s.open(tb), Source: s.dsn(), server: s, made: made}
}

// Restart ends it in order and starts it again, with options. After a kill it starts with no other
// binary log than it had.
func (a *Alone) Restart(tb testing.TB, options ...string) {
	tb.Helper()
	a.server.end(tb, syscall.SIGTERM)
	a.server.again(tb, slices.Concat(a.made, options)...)
}

// Clone has MySQL's plugin replace the server's data by that of the donor, as one restores a
// server. The server ends itself and is started again.
func (a *Alone) Clone(tb testing.TB, donor *Alone) {
	tb.Helper()
	run(tb, donor.DB, `INSTALL PLUGIN clone SONAME 'mysql_clone.so'`)
	run(tb, a.DB, `INSTALL PLUGIN clone SONAME 'mysql_clone.so';
		SET GLOBAL clone_valid_donor_list = '`+donor.server.on+`'`)
	host, port := donor.server.address(tb)
	_, err := a.DB.ExecContext(tb.Context(), `CLONE INSTANCE FROM root@'`+host+`':`+port+` IDENTIFIED BY ''`)
	tb.Logf("the server that was cloned to ended: %v", err) // error 3707: nothing restarts it
	<-a.server.ended
	a.server.cmd = nil
	a.server.again(tb)
}

// BackUp takes a copy by mariadb-backup, while the server runs. restore ends the server, puts the
// copy in the place of its data and starts it again.
func (a *Alone) BackUp(tb testing.TB) (restore func(tb testing.TB)) {
	tb.Helper()
	s, kept := a.server, a.server.path("backup")
	host, port := s.address(tb)
	backup := func(tb testing.TB, args ...string) {
		tb.Helper()
		args = append([]string{"--no-defaults", "--target-dir=" + kept}, args...)
		if out, err := s.command("mariadb-backup", args...).CombinedOutput(); err != nil {
			tb.Fatalf("mariadb-backup %v: %v\n%s", args, err, out)
		}
	}
	backup(tb, "--backup", "--host="+host, "--port="+port, "--user=root", "--datadir="+s.data())
	backup(tb, "--prepare")
	return func(tb testing.TB) {
		tb.Helper()
		s.end(tb, syscall.SIGTERM)
		if err := os.RemoveAll(s.root + s.data()); err != nil {
			tb.Fatal(err)
		}
		backup(tb, "--copy-back", "--datadir="+s.data())
		s.again(tb, a.made...)
	}
}
