package doctor

import (
	"context"
	"net"
	"strings"
)

// encryption finds a connection over a network without TLS. The server cannot tell whether its
// client has checked the certificate.
func encryption(ctx context.Context, x *examiner) (f Finding, err error) {
	state, err := x.rows(ctx, "encryption")
	if err != nil {
		return f, err
	}
	from := "pg_stat_ssl"
	if x.d.Name() == "mysql" {
		from = "SHOW SESSION STATUS"
	}
	encrypted := false
	for _, r := range state {
		f.saw(r[0], r[1], from)
		encrypted = encrypted || strings.HasSuffix(strings.ToLower(r[0]), "cipher") && r[1] != ""
	}
	peer, err := x.rows(ctx, "peer")
	if err != nil || len(peer) == 0 {
		return f, err
	}
	f.saw("host of the session", peer[0][0], "the server")
	switch {
	case encrypted:
		f.fine("the connection is encrypted; that the client checks the certificate is in its DSN alone")
	case isLocal(peer[0][0]):
		f.fine("the connection stays within the machine")
	default:
		f.raise(Warning, "the connection from "+peer[0][0]+" is not encrypted: a listener reads keys and "+
			"results, and a host that answers in the server's place gets the password", x.encrypts())
	}
	return f, nil
}

func (x *examiner) encrypts() string {
	if x.d.Name() == "mysql" {
		return "add tls=true to the DSN, and REQUIRE SSL to the user"
	}
	return "add sslmode=verify-full to the DSN, and write hostssl for host in pg_hba.conf"
}

// isLocal reports whether a session comes from the server's own machine. No host is that of a
// socket.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}
