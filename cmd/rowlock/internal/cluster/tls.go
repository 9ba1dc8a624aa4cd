package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// tls returns nil for a cluster without TLS.
func (e *Etcd) tls() (*tls.Config, error) {
	isTLS := func(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }
	if e.CACert == "" && e.Cert == "" && !slices.ContainsFunc(e.Endpoints, isTLS) {
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
