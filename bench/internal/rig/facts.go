package rig

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// settingsOf are the queries that say how durable a commit of a pinned connection is, by database.
var settingsOf = map[string][]string{
	"sqlite": {"PRAGMA journal_mode", "PRAGMA synchronous", "PRAGMA wal_autocheckpoint"},
	"postgres": {
		"SHOW fsync", "SHOW synchronous_commit", "SHOW wal_sync_method", "SHOW commit_delay", "SHOW default_transaction_isolation",
	},
	"mariadb": {
		"SELECT @@innodb_flush_log_at_trx_commit", "SELECT @@log_bin", "SELECT @@sync_binlog", "SELECT @@innodb_flush_method",
		"SELECT @@tx_isolation",
	},
	"mysql": {
		"SELECT @@innodb_flush_log_at_trx_commit", "SELECT @@log_bin", "SELECT @@sync_binlog", "SELECT @@innodb_flush_method",
		"SELECT @@transaction_isolation",
	},
}

// Facts says which server this is and how a session with rowlock's settings commits: without them no rate means anything.
func (d *Database) Facts(ctx context.Context) ([]string, error) {
	located, err := d.Dialect.Located(ctx, d.Pool)
	if err != nil {
		return nil, err
	}
	pinned, err := d.Pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	probed, err := located.Probe(ctx, pinned)
	if err != nil {
		return nil, err
	}
	session := conn.NewSession(pinned)
	defer session.Discard()
	if err := d.Dialect.Setup(ctx, session); err != nil {
		return nil, err
	}
	server, _, _ := strings.Cut(probed.Server, ", compiled") // the compiler is of no interest
	settings, err := values(ctx, pinned, settingsOf[d.Name])
	return []string{server, strings.Join(settings, ", ")}, err
}

func values(ctx context.Context, conn *sql.Conn, queries []string) ([]string, error) {
	var out []string
	for _, q := range queries {
		var value string
		if err := conn.QueryRowContext(ctx, q).Scan(&value); err != nil {
			return nil, fmt.Errorf("%s: %w", q, err)
		}
		name := strings.TrimPrefix(q[strings.LastIndexByte(q, ' ')+1:], "@@")
		out = append(out, name+" "+value)
	}
	return out, nil
}
