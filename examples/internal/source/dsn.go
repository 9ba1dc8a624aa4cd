package source

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// sqliteDSN sets what several processes on one file need: WAL lets readers and the writer work side
// by side, busy_timeout makes a writer wait for its turn, and immediate transactions take the turn
// when they begin, not halfway through.
func sqliteDSN(file string) string {
	path, err := filepath.Abs(file)
	if err != nil {
		path = file
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	settings := url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: settings.Encode()}).String()
}

// mysqlDSN makes the driver's own form of user:password@host:port/database. What has that form
// already is left alone.
func mysqlDSN(rest string) (string, error) {
	if cfg, err := mysqldriver.ParseDSN(rest); err == nil {
		return cfg.FormatDSN(), nil
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil {
		// Without err, which would show the password.
		return "", errors.New("-db mysql://…: not of the form mysql://user:password@host:port/database")
	}
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.DBName = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Port() == "" {
		cfg.Addr += ":3306"
	}
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += "?" + u.RawQuery
	}
	return dsn, nil
}
