package target

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

// Exposure says what another host that answers in the database's place would get.
type Exposure int

const (
	// Closed is a connection within the machine, or one whose server proves its name or its signer.
	Closed Exposure = iota
	// Unnamed is TLS without a look at the certificate: a host that only listens learns nothing.
	Unnamed
	// Clear is a connection that may go without TLS.
	Clear
)

// hop is one way to a server that a DSN allows.
type hop struct {
	host string
	tls  *tls.Config // nil: none
}

func (h hop) exposure() Exposure {
	switch {
	case IsLocal(h.host):
		return Closed
	case h.tls == nil:
		return Clear
	case h.tls.InsecureSkipVerify && h.tls.VerifyPeerCertificate == nil && h.tls.VerifyConnection == nil:
		return Unnamed
	}
	return Closed
}

// IsLocal reports whether a host is this machine by its very name: a socket or a loopback address.
// A name is not looked up, because an attacker who answers for the host may answer for the name.
func IsLocal(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || name == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// exposed returns the worst way that hops allow, and its host.
func exposed(hops []hop) (worst Exposure, host string) {
	for _, h := range hops {
		if e := h.exposure(); e > worst {
			worst, host = e, h.host
		}
	}
	return worst, host
}

// Refusal returns the error of --require-tls for an exposure, and Warning what is told without it.
func (e Exposure) Refusal(of, host, cure string) error {
	if e < Clear {
		return nil
	}
	return fmt.Errorf("%w: --require-tls: %s may connect to %s without TLS: %s", lease.ErrConfig, of, host, cure)
}

// Warning is what an operator should know, or "".
func (e Exposure) Warning(of, host, cure string) string {
	switch e {
	case Clear:
		return fmt.Sprintf("%s may connect to %s without TLS: a host that answers in its place gets the "+
			"password, and a listener reads what is sent: %s; --require-tls refuses this", of, host, cure)
	case Unnamed:
		return fmt.Sprintf("%s connects to %s by TLS and does not check its certificate: the connection is "+
			"encrypted, but a host that answers in its place gets the password: %s", of, host, cure)
	}
	return ""
}

// guard refuses what --require-tls does, and otherwise keeps a warning.
func (t *Target) guard(hops []hop) error {
	e, host := exposed(hops)
	cure := "add sslmode=verify-full, and sslrootcert=FILE if the signer is your own"
	if t.Kind == "mysql" {
		cure = "add tls=true"
	}
	if t.Settings.RequireTLS {
		if err := e.Refusal("--dsn", host, cure); err != nil {
			return err
		}
	}
	t.Warning = e.Warning("--dsn", host, cure)
	return nil
}

// postgresHops are the ways that pgx tries one after the other. sslmode=prefer, the default, falls
// back to one without TLS, and allow begins with it.
func postgresHops(dsn string) ([]hop, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: --dsn: %s", lease.ErrConfig, withoutDSN(err, dsn))
	}
	hops := []hop{{cfg.Host, cfg.TLSConfig}}
	for _, f := range cfg.Fallbacks {
		hops = append(hops, hop{f.Host, f.TLSConfig})
	}
	return hops, nil
}

// withoutDSN is what pgx says about a DSN, without the DSN: pgx hides a password before the @, and
// none that is a parameter.
func withoutDSN(err error, dsn string) string {
	text := keytext.Error(err)
	if _, rest, ok := strings.Cut(text, "`: "); ok {
		text = rest
	}
	for _, secret := range secrets(dsn) {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

// secrets are the texts of a DSN that no error may have.
func secrets(dsn string) []string {
	all := []string{dsn}
	if u, err := url.Parse(dsn); err == nil {
		password, _ := u.User.Password()
		all = append(all, password)
		for name, values := range u.Query() {
			if strings.Contains(name, "password") {
				all = append(all, values...)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// mysqlHops are those of the driver. Without TLS it asks the host that answers for a public key,
// and sends the password under it.
func mysqlHops(cfg *mysql.Config) []hop {
	if cfg.Net == "unix" {
		return nil
	}
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		host = cfg.Addr
	}
	if cfg.AllowFallbackToPlaintext {
		return []hop{{host, cfg.TLS}, {host, nil}}
	}
	return []hop{{host, cfg.TLS}}
}
