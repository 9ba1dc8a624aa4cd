//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var pgbouncerFaults = []*fault{
	{
		name: "pgbouncer", what: "PgBouncer, in transaction mode, killed and started again", on: []string{"postgres"}, alone: true, able: noPgBouncer,
		before: func(ctx context.Context, r *round) error { return r.bounce(ctx) },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 900*time.Millisecond, func() error {
				r.blows.note("PgBouncer killed")
				r.bouncer.kill()
				fight.Sleep(ctx, between(rng, 0, ttl/2))
				return r.bouncer.start(context.WithoutCancel(ctx))
			})
		},
	},
}

func noPgBouncer() string {
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		return "pgbouncer is not installed"
	}
	return ""
}

const bouncerSettings = `[databases]
* = host=127.0.0.1 port=%s user=app
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
server_reset_query_always = 0
max_client_conn = 500
server_login_retry = 0
log_connections = 0
log_disconnections = 0
`

// bounce puts PgBouncer between the proxies and the server.
func (r *round) bounce(ctx context.Context) error {
	folder := fmt.Sprintf("%s-bouncer-%d", r.server.folder, r.number)
	e := postgres
	e.setup = nil
	e.prepare = func(s *server) error {
		return os.WriteFile(folder+"/ini", fmt.Appendf(nil, bouncerSettings, r.server.port, s.port), 0o644)
	}
	e.serve = func(*server) []string { return []string{"pgbouncer", folder + "/ini"} }
	e.dsn = func(user, address string) string {
		return postgres.dsn(user, address) + "&default_query_exec_mode=exec"
	}
	var err error
	if r.bouncer, err = newServer(ctx, &e, folder); err != nil {
		return err
	}
	r.later(func(context.Context) error { return r.bouncer.end() })
	pooled := r.database
	pooled.Pooled = true
	r.team = fight.NewTeam(r.folder, fight.Job{Database: pooled, Plan: r.plan}, r.workers)
	for _, p := range r.proxies {
		p.Retarget(r.bouncer.address())
		r.team.Sources = append(r.team.Sources, e.dsn(worker, p.Address()))
	}
	return nil
}
