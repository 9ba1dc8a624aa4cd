//go:build linux

package main

import (
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

var postgres = engine{
	name: "postgres", user: "postgres",
	prepare: func(s *server) error { return initdb(s) },
	serve: func(s *server) []string {
		return []string{
			program("postgres"), "-D", s.folder + "/data", "-p", s.port, "-c", "listen_addresses=*",
			"-c", "unix_socket_directories=" + s.folder, "-c", "max_connections=" + strconv.Itoa(mostConnections),
			"-c", "log_min_messages=fatal",
		}
	},
	dsn: func(user, address string) string {
		return "postgres://" + user + "@" + address + "/postgres?sslmode=disable&connect_timeout=5"
	},
	root: "postgres",
	setup: []string{
		`CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`,
		`ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO app`, `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO app`,
	},
	protocol: proxy.Postgres,
	chroot:   func() string { return "" },
	sessions: `SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'`,
	version:  `SHOW server_version`,
	replicas: streaming{},
}

func initdb(s *server, options ...string) error {
	line := []string{
		program("initdb"), "--pgdata=" + s.folder + "/data", "--username=postgres", "--auth=trust", "--encoding=UTF8",
		"--locale=C.UTF-8", "--no-sync", "--no-instructions",
	}
	if err := s.run(append(line, options...)...); err != nil {
		return err
	}
	return os.WriteFile(s.folder+"/data/pg_hba.conf", []byte(access), 0o600)
}

// mostConnections has room for those that the fault "late" leaves behind: the server keeps each
// until it has executed the statement, while the client makes another.
const mostConnections = 400

// access is for this machine and the namespaces of its workers.
const access = `local all all trust
local replication all trust
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
host all all 10.213.0.0/16 trust
`

// program is one of PostgreSQL's: Debian keeps them out of the PATH, by version.
func program(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	sort.Strings(found)
	if len(found) == 0 {
		return name
	}
	return found[len(found)-1]
}

// initFile is of each server, and no replica's business.
const initFile = `set session sql_log_bin = 0;
create database if not exists rowlock_test;
create user if not exists root@'%';
grant all on *.* to root@'%' with grant option;
create user if not exists app@'%';
grant all on rowlock_test.* to app@'%';
`

func innodb(user, address string) string {
	return user + "@tcp(" + address + ")/rowlock_test?timeout=5s"
}

// MySQL's table of information_schema cannot be read while a statement's text is not utf8mb3.
const innodbList = `/*!80022 performance_schema.processlist */ /*M! information_schema.processlist */ WHERE user = 'app'`

const innodbSessions = `SELECT count(*) FROM ` + innodbList

var mariadb = engine{
	name: "mariadb", user: "nobody",
	prepare: func(s *server) error {
		if err := os.WriteFile(s.folder+"/init.sql", []byte(initFile), 0o644); err != nil {
			return err
		}
		return s.run("mariadb-install-db", "--no-defaults", "--datadir="+s.folder+"/data", "--tmpdir="+s.folder,
			"--skip-name-resolve", "--skip-test-db", "--auth-root-authentication-method=normal")
	},
	serve: func(s *server) []string {
		return append([]string{"mariadbd", "--no-defaults"}, s.innodbLine()...)
	},
	dsn: innodb, protocol: proxy.MySQL, sessions: innodbSessions, version: `SELECT version()`,
	chroot: func() string { return "" }, root: "root", replicas: mariadbBinlog,
}

var mysql = engine{
	name: "mysql", user: "mysql",
	prepare: func(s *server) error {
		if err := os.WriteFile(s.outside(s.folder+"/init.sql"), []byte(initFile), 0o644); err != nil {
			return err
		}
		return s.run("/usr/sbin/mysqld", "--no-defaults", "--initialize-insecure", "--datadir="+s.folder+"/data", "--tmpdir="+s.folder)
	},
	serve: func(s *server) []string {
		return append([]string{"/usr/sbin/mysqld", "--no-defaults", "--mysqlx=OFF"}, s.innodbLine()...)
	},
	dsn: innodb, protocol: proxy.MySQL, sessions: innodbSessions, version: `SELECT version()`,
	chroot: mysqlRoot, root: "root", replicas: mysqlBinlog,
}

// mysqlRoot is the small Debian that scripts/with-servers keeps for MySQL.
func mysqlRoot() string {
	cache := os.Getenv("ROWLOCK_CACHE")
	if cache == "" {
		folder, _ := os.UserCacheDir()
		cache = filepath.Join(folder, "rowlock")
	}
	return filepath.Join(cache, "mysql-sid")
}

func (s *server) innodbLine() []string {
	return []string{
		"--datadir=" + s.folder + "/data", "--tmpdir=" + s.folder, "--socket=" + s.folder + "/socket", "--init-file=" + s.folder + "/init.sql",
		"--bind-address=*", "--port=" + s.port, "--skip-name-resolve", "--max-connections=" + strconv.Itoa(mostConnections),
	}
}
