package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/lease"
)

// scheme is that of an endpoint, or "".
func scheme(endpoint string) string {
	before, _, found := strings.Cut(endpoint, "://")
	if !found {
		return ""
	}
	return strings.ToLower(before)
}

func (e *Etcd) usesTLS() bool {
	return e.CACert != "" || e.Cert != "" ||
		slices.ContainsFunc(e.Endpoints, func(s string) bool { return scheme(s) == "https" })
}

// checkEndpoint refuses what would be sent otherwise than the flags look: etcd's client takes the
// certificates of an http endpoint for no reason to encrypt. No error has an endpoint with an @ in
// it, because a password stands before.
func (e *Etcd) checkEndpoint(endpoint string) error {
	switch {
	case strings.Contains(endpoint, "@"):
		return errors.New("an endpoint of --etcd has a user in it: give it with --user, or ETCDCTL_USER and " +
			"ETCDCTL_PASSWORD")
	case scheme(endpoint) == "http" && e.usesTLS():
		return fmt.Errorf("--etcd %s is reached without TLS, and certificates or https endpoints are given: "+
			"write https://", endpoint)
	}
	return nil
}

// clear returns the first endpoint on another host that is reached without TLS.
func (e *Etcd) clear() string {
	for _, endpoint := range e.Endpoints {
		_, address, found := strings.Cut(endpoint, "://")
		if !found {
			address = endpoint
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		if !e.usesTLS() && scheme(endpoint) != "unix" && !target.IsLocal(host) {
			return endpoint
		}
	}
	return ""
}

const etcdCure = "write https://, and --cacert if the signer is your own"

func (e *Etcd) refusal() error {
	if endpoint := e.clear(); endpoint != "" {
		return target.Clear.Refusal("--etcd", endpoint, etcdCure)
	}
	return nil
}

// Warning says what another host could get, or is empty.
func (e *Etcd) Warning() string {
	if endpoint := e.clear(); endpoint != "" {
		return target.Clear.Warning("--etcd", endpoint, etcdCure)
	}
	return ""
}

// tls returns nil for a cluster without TLS.
func (e *Etcd) tls() (*tls.Config, error) {
	if !e.usesTLS() {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CACert != "" {
		var err error
		if cfg.RootCAs, err = signers(e.CACert); err != nil {
			return nil, err
		}
	}
	if e.Cert != "" {
		pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: --cert and --key: %w", lease.ErrConfig, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// signers are those who sign the servers' certificates.
func signers(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: --cacert: %w", lease.ErrConfig, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: --cacert %s has no certificate in PEM", lease.ErrConfig, file)
	}
	return pool, nil
}
