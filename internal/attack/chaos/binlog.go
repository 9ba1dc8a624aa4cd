//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// binlog is MariaDB's and MySQL's replication, for which they have different words.
type binlog struct {
	options        []string
	position, wait string // wait has the position
	change         string // with the primary's port
	before, after  []string
	receiver       string // stops it
	promotion      []string
}

var mariadbBinlog = &binlog{
	options:  []string{"--innodb-log-file-size=8M", "--log-slave-updates"},
	position: `SELECT @@gtid_binlog_pos`, wait: `SELECT MASTER_GTID_WAIT('%s', 60)`,
	before:    []string{`SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos`, `SET GLOBAL read_only = ON`},
	change:    `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %s, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos`,
	after:     []string{`START SLAVE`},
	receiver:  `STOP SLAVE IO_THREAD`,
	promotion: []string{`STOP SLAVE`, `RESET SLAVE ALL`, `SET GLOBAL read_only = OFF`},
}

var mysqlBinlog = &binlog{
	options:  []string{"--innodb-redo-log-capacity=8M", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--skip-replica-start"},
	position: `SELECT @@GLOBAL.gtid_executed`, wait: `SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 60)`,
	before:    []string{`SET GLOBAL super_read_only = ON`},
	change:    `CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %s, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1`,
	after:     []string{`START REPLICA`},
	receiver:  `STOP REPLICA IO_THREAD`,
	promotion: []string{`STOP REPLICA`, `RESET REPLICA ALL`, `SET GLOBAL super_read_only = OFF`, `SET GLOBAL read_only = OFF`},
}

func (b *binlog) leader(e engine, number int) engine {
	serve := e.serve
	e.serve = func(s *server) []string {
		line := append(serve(s), b.options...)
		// An index with whole paths would have a copy read its primary's log
		return append(line, "--server-id="+strconv.Itoa(number), "--log-bin=bin", "--relay-log=relay", "--sync-binlog=0",
			"--innodb-flush-method=nosync", "--innodb-buffer-pool-size=32M")
	}
	return e
}

// follow takes the identity of MySQL's primary away.
func (b *binlog) follow(s, _ *server) error {
	if err := os.Remove(s.outside(s.folder + "/data/auto.cnf")); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(s.outside(s.folder+"/init.sql"), []byte(initFile), 0o644)
}

func (b *binlog) join(ctx context.Context, primary, s *server) error {
	list := slices.Concat(b.before, []string{fmt.Sprintf(b.change, primary.port)}, b.after)
	if err := s.exec(ctx, list...); err != nil {
		return err
	}
	return b.receive(ctx, primary, s)
}

func (b *binlog) receive(ctx context.Context, primary, s *server) error {
	if got := s.ask(ctx, fmt.Sprintf(b.wait, primary.ask(ctx, b.position))); got != "0" {
		return fmt.Errorf("the replica has not caught up: %q: %s", got, s.lastLog())
	}
	return nil
}

func (b *binlog) stop(ctx context.Context, s *server) error { return s.exec(ctx, b.receiver) }

// promote starts the server if it is an old primary that comes back.
func (b *binlog) promote(ctx context.Context, s *server) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.exec(ctx, b.promotion...)
}
