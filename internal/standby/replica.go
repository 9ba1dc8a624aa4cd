package standby

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/ports"
)

// Replicated is a MariaDB or MySQL, and a replica that acknowledges each of its commits
// (semi-synchronous replication) and is read-only.
type Replicated struct {
	DB      *sql.DB // on the primary, with several statements at a time
	Replica *sql.DB // on the replica
	primary *innodb
	replica *innodb
}

// StartReplicated starts a "mariadb" or "mysql" and its replica, and stops them with the test.
// Without programs of the suite's own the test is skipped aloud, or fails if ROWLOCK_TEST_REQUIRE
// names the standby.
func StartReplicated(tb testing.TB, name string) *Replicated {
	tb.Helper()
	first := install(tb, products[name])
	second := &innodb{product: first.product, root: first.root, folder: first.folder, as: first.as}
	addresses, err := ports.Free(2)
	if err != nil {
		tb.Fatal(err)
	}
	first.number, first.on, second.number, second.on = 1, addresses[0], 2, addresses[1]
	first.initialize(tb)
	twin(tb, first, second)
	first.start(tb)
	second.start(tb)
	r := &Replicated{first.open(tb), second.open(tb), first, second}
	_, port, _ := net.SplitHostPort(first.on)
	run(tb, r.Replica, fmt.Sprintf(first.join, port)+`; SET GLOBAL read_only = ON`)
	run(tb, r.DB, first.wait)
	r.await(tb)
	return r
}

// install finds the programs and makes a folder that they may write to.
func install(tb testing.TB, p *product) *innodb {
	tb.Helper()
	root, err := programs(p)
	if err != nil && slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), "standby") {
		tb.Fatalf("a standby is required by ROWLOCK_TEST_REQUIRE, and %v", err)
	}
	if err != nil {
		tb.Skipf("SKIPPED, NOT TESTED WITH A REPLICA OF %s: %v", strings.ToUpper(p.name), err)
	}
	s := &innodb{product: p, root: root, as: credential(tb, root, p.user)}
	parent := os.TempDir()
	if root != "" {
		parent = filepath.Join(root, "srv")
	}
	folder, err := os.MkdirTemp(parent, "rowlock-replica-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	s.folder = strings.TrimPrefix(folder, root)
	init := `SET SESSION sql_log_bin = 0; CREATE DATABASE IF NOT EXISTS rowlock_test;
CREATE USER IF NOT EXISTS root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
`
	init = strings.ReplaceAll(init, "; CREATE", ";\nCREATE")
	init = strings.ReplaceAll(init, "; GRANT", ";\nGRANT")
	if err := os.WriteFile(filepath.Join(folder, "init.sql"), []byte(init), 0o644); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chown(folder, int(s.as.Uid), int(s.as.Gid)); err != nil {
		tb.Fatal(err)
	}
	return s
}

// programs returns the root of the system that has them, "" for this one. MySQL is where the
// suite's own runs.
func programs(p *product) (root string, err error) {
	switch {
	case os.Geteuid() != 0:
		return "", fmt.Errorf("only root can become the user %s", p.user)
	case os.Getenv("ROWLOCK_TEST_"+strings.ToUpper(p.name)) == "":
		return "", fmt.Errorf("ROWLOCK_TEST_%s is not set: run make test", strings.ToUpper(p.name))
	case p.name == "mariadb":
		_, err = exec.LookPath(p.program)
		return "", err
	}
	root, err = os.Readlink("/proc/" + os.Getenv("ROWLOCK_TEST_MYSQL_PID") + "/root")
	if err != nil || root == "/" {
		return "", fmt.Errorf("the MySQL of ROWLOCK_TEST_MYSQL_PID is not one of scripts/with-servers: %v", err)
	}
	return root, nil
}

// twin copies the data folder, which takes a tenth of the time of making one. What makes a server
// itself is left out.
func twin(tb testing.TB, first, second *innodb) {
	tb.Helper()
	from, to := filepath.Join(first.root, first.data()), filepath.Join(first.root, second.data())
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	_ = os.Remove(filepath.Join(to, "auto.cnf"))
}

// await returns when commits wait for the replica.
func (r *Replicated) await(tb testing.TB) {
	tb.Helper()
	until(tb, "the replica acknowledges", func() bool {
		rows := table(tb, r.DB, `SHOW GLOBAL STATUS WHERE Variable_name IN
			('Rpl_semi_sync_source_clients', 'Rpl_semi_sync_master_clients')`)
		return len(rows) == 1 && rows[0]["Value"] == "1"
	})
}

// Source is the primary's DSN, and ReplicaSource the replica's.
func (r *Replicated) Source() string { return r.primary.dsn() }

// ReplicaSource is the replica's DSN.
func (r *Replicated) ReplicaSource() string { return r.replica.dsn() }

// Address is the primary's, as host:port.
func (r *Replicated) Address() string { return r.primary.on }

// ReplicaAddress is the replica's, as host:port.
func (r *Replicated) ReplicaAddress() string { return r.replica.on }

// Kill ends the primary at once.
func (r *Replicated) Kill(tb testing.TB) { tb.Helper(); r.primary.kill(tb) }

// Pause has the replica read no more, and Resume go on. Pause returns when the primary may not have
// noticed yet, and Resume when commits wait for the replica again.
func (r *Replicated) Pause(tb testing.TB) { tb.Helper(); run(tb, r.Replica, r.primary.stop) }

// Resume ends Pause.
func (r *Replicated) Resume(tb testing.TB) {
	tb.Helper()
	run(tb, r.Replica, r.primary.resume)
	r.await(tb)
}

// CatchUp returns when the replica has read all that the primary has written. The primary takes no
// more writes.
func (r *Replicated) CatchUp(tb testing.TB) {
	tb.Helper()
	until(tb, "the replica has caught up", func() bool {
		file := table(tb, r.DB, r.primary.position)[0]
		for _, row := range table(tb, r.Replica, r.primary.status) {
			for _, name := range []string{"Master_Log_File", "Source_Log_File"} {
				read := row[strings.Replace("Read_"+name, "_File", "_Pos", 1)]
				if row[name] == file["File"] && read == file["Position"] {
					return true
				}
			}
		}
		return false
	})
}

// Promote has the replica apply all that it has received, and take writes. Its commits wait for
// none.
func (r *Replicated) Promote(tb testing.TB) {
	tb.Helper()
	run(tb, r.Replica, r.primary.stop)
	until(tb, "the replica has applied all that it has received", func() bool {
		for _, row := range table(tb, r.Replica, r.primary.status) {
			if row["Last_SQL_Error"] != "" {
				tb.Fatalf("the replica has stopped: %s", row["Last_SQL_Error"])
			}
			for _, name := range []string{"Slave_SQL_Running_State", "Replica_SQL_Running_State"} {
				if strings.Contains(strings.ToLower(row[name]), "has read all relay log") {
					return true
				}
			}
		}
		return false
	})
	run(tb, r.Replica, r.primary.promote)
}

func run(tb testing.TB, db *sql.DB, query string) {
	tb.Helper()
	if _, err := db.ExecContext(tb.Context(), query); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// table reads rows by the names of their columns.
func table(tb testing.TB, db *sql.DB, query string) (all []map[string]string) {
	tb.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(tb.Context()), query)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		tb.Fatal(err)
	}
	for rows.Next() {
		values, row := make([]any, len(names)), make(map[string]string)
		texts := make([]sql.NullString, len(names))
		for i := range texts {
			values[i] = &texts[i]
		}
		if err := rows.Scan(values...); err != nil {
			tb.Fatal(err)
		}
		for i, name := range names {
			row[name] = texts[i].String
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}
