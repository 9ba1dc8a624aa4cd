//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// streaming is PostgreSQL's replication.
type streaming struct{}

// leader has small segments of the log, so that its copies are small.
func (streaming) leader(e engine, _ int) engine {
	serve := e.serve
	e.prepare = func(s *server) error { return initdb(s, "--wal-segsize=1") }
	e.serve = func(s *server) []string { return append(serve(s), "-c", "fsync=off", "-c", "wal_keep_size=64MB") }
	return e
}

func (streaming) follow(s, primary *server) error {
	data := s.folder + "/data"
	settings := fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%s user=%s'\n", primary.port, primary.root)
	return errors.Join(
		os.Remove(data+"/postmaster.pid"),
		os.WriteFile(data+"/standby.signal", nil, 0o644),
		os.WriteFile(data+"/postgresql.auto.conf", []byte(settings), 0o600),
	)
}

func (streaming) join(ctx context.Context, _, s *server) error {
	return s.await(ctx, `SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'`, "1")
}

func (streaming) receive(ctx context.Context, primary, s *server) error {
	position := primary.ask(ctx, `SELECT pg_current_wal_insert_lsn()::text`)
	return s.await(ctx, fmt.Sprintf(`SELECT (pg_last_wal_receive_lsn() >= '%s')::text`, position), "true")
}

func (streaming) stop(ctx context.Context, s *server) error {
	if err := s.exec(ctx, `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`); err != nil {
		return err
	}
	return s.await(ctx, `SELECT count(*) FROM pg_stat_wal_receiver`, "0")
}

// promote starts the server if it is an old primary that comes back. A statement that waits for the
// end of recovery can be canceled by what is replayed meanwhile.
func (streaming) promote(ctx context.Context, s *server) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	if s.ask(ctx, `SELECT pg_is_in_recovery()::text`) == "true" {
		if err := s.exec(ctx, `SELECT pg_promote(false)`); err != nil {
			return err
		}
	}
	return s.await(ctx, `SELECT pg_is_in_recovery()::text`, "false")
}
