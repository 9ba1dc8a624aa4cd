// Package cluster connects to the cluster of an application's bridge, and checks that it belongs to
// the application's table.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd says how to connect to etcd.
type Etcd struct {
	Endpoints         []string
	Prefix            string // as in etcd.Prefix
	CACert, Cert, Key string // files
	User, Password    string // User may be USER:PASSWORD
	Timeout           time.Duration
	// RequireTLS refuses to connect to another host without TLS.
	RequireTLS bool
}

// Check returns what is wrong with the settings before anything is dialed. Its errors wrap
// lease.ErrConfig.
func (e *Etcd) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", lease.ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case len(e.Endpoints) == 0 || e.Endpoints[0] == "":
		return bad("no cluster is named: give --etcd ENDPOINT,… or set ROWLOCK_ETCD, as the application's bridge has it")
	case e.Prefix == "":
		return bad("--etcd-prefix is empty: write that of the application's etcd.Prefix, by default rowlock/")
	case e.Timeout < 100*time.Millisecond:
		return bad("--timeout %s is too short for etcd: write at least 100ms", e.Timeout)
	case (e.Cert == "") != (e.Key == ""):
		return bad("--cert %q and --key %q belong together: give both or none", e.Cert, e.Key)
	}
	for _, endpoint := range e.Endpoints {
		if err := e.checkEndpoint(endpoint); err != nil {
			return fmt.Errorf("%w: %w", lease.ErrConfig, err)
		}
	}
	if e.RequireTLS {
		return e.refusal()
	}
	return nil
}

// Dial returns the cluster, and what closes it. Before anything is written it checks that a bridge
// of the owner has used the prefix: adapter.Claim makes one of a table.
func (e *Etcd) Dial(ctx context.Context, owner string) (*etcd.Cluster, func(), error) {
	security, err := e.tls()
	if err != nil {
		return nil, nil, err
	}
	name, password, _ := strings.Cut(e.User, ":")
	client, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, TLS: security, Logger: zap.NewNop(),
		Username: name, Password: cmp.Or(password, e.Password),
		DialTimeout: e.Timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: e.Timeout,
	})
	if err != nil {
		return nil, nil, e.failed(err)
	}
	if err := e.isOf(ctx, client, owner); err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	c, err := etcd.New(ctx, client, etcd.Prefix(e.Prefix), etcd.Timeout(e.Timeout))
	if err != nil {
		_ = client.Close()
		return nil, nil, e.failed(err)
	}
	return c, func() { _ = c.Close(); _ = client.Close() }, nil
}

// isOf looks for the name that every etcd.New writes. Without it a key would be moved under a
// prefix that the application does not know: the next recall under that prefix would give the key
// back to the table while the application holds it in the cluster. So would it if the prefix is
// another application's, which is known by the claim of a bridge. The command claims nothing,
// because what it was told may be wrong.
func (e *Etcd) isOf(ctx context.Context, client *clientv3.Client, owner string) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	used, err := client.Get(ctx, e.Prefix+"p")
	if err != nil {
		return e.failed(err)
	}
	claim, err := client.Get(ctx, e.Prefix+"t")
	if err != nil {
		return e.failed(err)
	}
	switch {
	case len(used.Kvs) == 0:
		return fmt.Errorf("%w: no bridge has ever used --etcd-prefix %q in this cluster: check it and --etcd, "+
			"and start the application first", lease.ErrConfig, e.Prefix)
	case len(claim.Kvs) > 0 && string(claim.Kvs[0].Value) != owner:
		return fmt.Errorf("%w: --etcd-prefix %q belongs to the tables %q, and these are %q (placement, instance, "+
			"prefix): check --etcd, --etcd-prefix, --placement and --dsn", lease.ErrConfig, e.Prefix,
			claim.Kvs[0].Value, owner)
	}
	return nil
}

// UnreachableError says that etcd does not answer.
type UnreachableError struct{ error }

func (u *UnreachableError) Unwrap() error { return u.error }

func (e *Etcd) failed(err error) error {
	if oneline.Is(err, rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty,
		lease.ErrPrivilege) {
		return fmt.Errorf("%w: etcd refuses: %w: check --user, and grant it readwrite on the prefix %q",
			lease.ErrPrivilege, err, e.Prefix)
	}
	return &UnreachableError{fmt.Errorf("etcd at %s does not answer: %w: check that it runs, --etcd, and the "+
		"files of --cacert, --cert and --key", strings.Join(e.Endpoints, ","), err)}
}
