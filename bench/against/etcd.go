package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const (
	nameEtcd    = "etcd Mutex"
	etcdClients = 4
)

// etcd is what its contender has: a few clients with a session each, which share it where no two want the same key; and a session for each
// worker where they do, because a session that has a key gets it once more.
type etcd struct {
	clients []*clientv3.Client
	shared  []*concurrency.Session
	own     []*concurrency.Session
}

func (o *others) addEtcd(ctx context.Context, s settings) error {
	m, err := startMember()
	if err != nil {
		return err
	}
	o.closers, o.etcd = append(o.closers, m), m.endpoint
	e := new(etcd)
	o.closers = append(o.closers, e)
	for range etcdClients {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		e.clients = append(e.clients, c)
		session, err := concurrency.NewSession(c)
		if err != nil {
			return err
		}
		e.shared = append(e.shared, session)
	}
	status, err := e.clients[0].Status(ctx, m.endpoint)
	if err != nil {
		return err
	}
	o.facts = append(o.facts, fmt.Sprintf("etcd: %s, one member in a process of its own, fsync on", status.Version))
	o.contenders = append(o.contenders, &contender{
		name: nameEtcd, system: "etcd", pool: fmt.Sprintf("%d clients", etcdClients), key: recurring('e'), levels: []int{1, 16, 64, 256, 1024},
		pair: e.pairOf(&e.shared), contend: e.pairOf(&e.own), wait: true, ready: e.sessions,
		meter: &rig.Meter{PID: m.cmd.Process.Pid},
	})
	return nil
}

// sessions makes so many sessions.
func (e *etcd) sessions(_ context.Context, workers int) error {
	var g errgroup.Group
	had := len(e.own)
	e.own = append(e.own, make([]*concurrency.Session, max(0, workers-had))...)
	for n := had; n < workers; n++ {
		g.Go(func() (err error) {
			e.own[n], err = concurrency.NewSession(e.clients[n%etcdClients])
			return err
		})
	}
	return g.Wait()
}

// pairOf locks with the worker's session of those.
func (e *etcd) pairOf(sessions *[]*concurrency.Session) pair {
	return func(ctx context.Context, worker int, key string, inside func() error) error {
		m := concurrency.NewMutex((*sessions)[worker%len(*sessions)], key)
		if err := m.Lock(ctx); err != nil {
			return err
		}
		return errors.Join(call(inside), m.Unlock(ctx))
	}
}

// Close leaves the sessions to the member, which is thrown away.
func (e *etcd) Close() error {
	for _, s := range append(e.shared, e.own...) {
		if s != nil {
			s.Orphan()
		}
	}
	var errs []error
	for _, c := range e.clients {
		if err := c.Close(); !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

var _ io.Closer = (*etcd)(nil)
