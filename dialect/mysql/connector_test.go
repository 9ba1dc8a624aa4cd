package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"reflect"
	"testing"
	"time"

	driving "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// eachServer runs f with the settings of a connection to each server.
func eachServer(t *testing.T, f func(t *testing.T, cfg *driving.Config)) {
	for _, k := range testdb.Kinds {
		if k.Driver != "mysql" {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			cfg, err := driving.ParseDSN(k.DSN(t))
			if err != nil {
				t.Fatal(err)
			}
			f(t, cfg)
		})
	}
}

// sessionOf sets up a session on a connection of cfg by mysql.Connector.
func sessionOf(t *testing.T, cfg *driving.Config) *conn.Session {
	t.Helper()
	c, err := mysql.Connector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(c)
	t.Cleanup(func() { _ = pool.Close() })
	pinned, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	t.Cleanup(s.Discard)
	if err := sqlstore.Of(mysql.New()).Setup(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhichConnectionsEndByADeadline(t *testing.T) {
	direct := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	driving.RegisterDialContext("special", func(ctx context.Context, addr string) (net.Conn, error) {
		return direct(ctx, "tcp", addr)
	})
	for name, one := range map[string]struct {
		change  func(*driving.Config)
		limited bool
	}{
		"plain":                 {func(*driving.Config) {}, true},
		"a dialer of its own":   {func(c *driving.Config) { c.DialFunc = direct }, true},
		"a network of its own":  {func(c *driving.Config) { c.Net = "special" }, false},
		"an end of each read":   {func(c *driving.Config) { c.ReadTimeout = time.Minute }, false},
		"an end of each write":  {func(c *driving.Config) { c.WriteTimeout = time.Minute }, false},
		"without a log":         {func(c *driving.Config) { c.Logger = nil }, true},
		"compressed":            {func(c *driving.Config) { _ = c.Apply(driving.EnableCompression(true)) }, true},
		"a bound of connecting": {func(c *driving.Config) { c.Timeout = time.Minute }, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, cfg *driving.Config) {
				one.change(cfg)
				if s := sessionOf(t, cfg); (s.Limit != nil) != one.limited {
					t.Errorf("a deadline: %t, want %t", s.Limit != nil, one.limited)
				}
			})
		})
	}
}

func TestADeadlineThatHasPassedSaysWhyAndIsNotLogged(t *testing.T) {
	soon := func(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
		return ctx, func() {}, 50 * time.Millisecond
	}
	canceled := func(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(50*time.Millisecond, cancel)
		return ctx, cancel, time.Hour
	}
	for why, begin := range map[error]func(context.Context) (
		context.Context, context.CancelFunc, time.Duration,
	){context.DeadlineExceeded: soon, context.Canceled: canceled} {
		t.Run(why.Error(), func(t *testing.T) {
			eachServer(t, func(t *testing.T, cfg *driving.Config) {
				var out bytes.Buffer
				cfg.Logger = log.New(&out, "", 0)
				s := sessionOf(t, cfg)
				ctx, cancel, within := begin(t.Context())
				defer cancel()
				began := time.Now()
				told := s.Bind(ctx, began.Add(within))
				_, err := s.Conn().ExecContext(told, `DO SLEEP(30)`)
				err = s.Ended(err)
				s.Unbind()
				if took := time.Since(began); took > 10*time.Second || !errors.Is(err, why) {
					t.Errorf("%v after %s, want %v", err, took, why)
				}
				if out.Len() > 0 {
					t.Errorf("logged: %s", &out)
				}
			})
		})
	}
}

func TestAConnectionThatTheServerEndsWasNotTooLate(t *testing.T) {
	eachServer(t, func(t *testing.T, cfg *driving.Config) {
		var out bytes.Buffer
		cfg.Logger = log.New(&out, "", 0)
		s, other := sessionOf(t, cfg), sessionOf(t, cfg)
		var id int64
		if err := s.Conn().QueryRowContext(t.Context(), `SELECT CONNECTION_ID()`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		told := s.Bind(t.Context(), time.Now().Add(time.Hour))
		defer s.Unbind()
		_, err := other.Conn().ExecContext(t.Context(), fmt.Sprintf(`KILL CONNECTION %d`, id))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Conn().ExecContext(told, `DO SLEEP(30)`)
		if err = s.Ended(err); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// What is sent after Unbind has any time, also if the deadline has passed in between.
func TestAnUnboundConnectionHasNoDeadline(t *testing.T) {
	eachServer(t, func(t *testing.T, cfg *driving.Config) {
		s := sessionOf(t, cfg)
		end := time.Now().Add(20 * time.Millisecond)
		s.Bind(t.Context(), end)
		s.Unbind()
		if _, err := s.Conn().ExecContext(t.Context(), `DO SLEEP(0.05)`); err != nil {
			t.Error(err)
		}
	})
}

func TestTheSettingsAreNotChanged(t *testing.T) {
	cfg := driving.NewConfig()
	cfg.Addr = "db:3306"
	before := cfg.Clone()
	if _, err := mysql.Connector(cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.DialFunc != nil || !reflect.DeepEqual(cfg, before) {
		t.Errorf("%+v, before %+v", cfg, before)
	}
}

func TestSettingsThatTheDriverRefuses(t *testing.T) {
	cfg := driving.NewConfig()
	cfg.TLSConfig = "unregistered"
	if _, err := mysql.Connector(cfg); err == nil {
		t.Error("it is accepted")
	}
}
