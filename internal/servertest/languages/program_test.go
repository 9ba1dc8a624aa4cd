package languages

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

const examples = "../../../examples/languages"

// process is a locker in any language: it takes lines and answers each.
type process interface {
	Send(line string)
	Receive() string
	Kill()
}

// program is a process in another language than Go.
type program struct {
	s   *servertest.Scene
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// languages start a locker of a key on the scene's tables.
var languages = map[string]func(s *servertest.Scene, key string, ttl time.Duration) process{
	"go": func(s *servertest.Scene, key string, ttl time.Duration) process {
		c := s.Child("obey", "none", ttl)
		c.Send(key)
		return c
	},
	"python": func(s *servertest.Scene, key string, ttl time.Duration) process {
		python := testdb.Installed(s, "python")
		return start(s, exec.Command(python, "locker.py", sourceURL(s), key,
			seconds(ttl), s.Env.Dialect.Names().Prefix))
	},
	"java": func(s *servertest.Scene, key string, ttl time.Duration) process {
		return start(s, java(s, key, ttl))
	},
}

func java(s *servertest.Scene, key string, ttl time.Duration) *exec.Cmd {
	drivers := testdb.Installed(s, "java")
	return exec.Command("java", "-XX:TieredStopAtLevel=1",
		"-cp", compiled(s)+string(os.PathListSeparator)+drivers, "Locker", javaURL(s), key,
		seconds(ttl), s.Env.Dialect.Names().Prefix)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func start(s *servertest.Scene, cmd *exec.Cmd) *program {
	s.Helper()
	cmd.Dir, cmd.Stderr = examples, os.Stderr
	if cmd.Env == nil {
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // Java reads its arguments by it
	}
	in, err := cmd.StdinPipe()
	s.OK(err)
	out, err := cmd.StdoutPipe()
	s.OK(err)
	s.OK(cmd.Start())
	p := &program{s, cmd, in, bufio.NewScanner(out)}
	s.Cleanup(p.Kill)
	return p
}

func (p *program) Send(line string) {
	p.s.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.s.Errorf("the program is gone: %v", err)
	}
}

func (p *program) Receive() string {
	if p.out.Scan() {
		return p.out.Text()
	}
	return "(nothing more)"
}

func (p *program) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

var (
	compile sync.Once
	classes string
)

// compiled is the folder of the Java program's classes.
func compiled(s *servertest.Scene) string {
	s.Helper()
	compile.Do(func() {
		dir, err := os.MkdirTemp("", "rowlock-java-")
		s.OK(err)
		javac := exec.Command("javac", "-d", dir, filepath.Join(examples, "Locker.java"))
		javac.Env = append(os.Environ(), "LC_ALL=C") // it compiles with any encoding of the machine's
		out, err := javac.CombinedOutput()
		if err != nil {
			s.Fatalf("javac: %v\n%s", err, out)
		}
		classes = dir
	})
	if classes == "" {
		s.Fatal("the Java program could not be compiled: see the test that came first")
	}
	return classes
}

// address is where the scene's server is.
func address(s *servertest.Scene) (user *url.Userinfo, host, database string) {
	s.Helper()
	if s.Env.Driver == "mysql" {
		cfg, err := mysqldriver.ParseDSN(s.Env.Source)
		s.OK(err)
		return url.UserPassword(cfg.User, cfg.Passwd), cfg.Addr, cfg.DBName
	}
	u, err := url.Parse(s.Env.Source)
	s.OK(err)
	return u.User, u.Host, strings.TrimPrefix(u.Path, "/")
}

// file is the path of the scene's SQLite database.
func file(s *servertest.Scene) string {
	s.Helper()
	path, _, _ := strings.Cut(strings.TrimPrefix(s.Env.Source, "file:"), "?")
	path, err := url.PathUnescape(path)
	s.OK(err)
	return path
}

func sourceURL(s *servertest.Scene) string {
	switch s.Env.Driver {
	case "sqlite":
		return "sqlite:" + file(s)
	case "pgx":
		return s.Env.Source
	}
	user, host, database := address(s)
	return (&url.URL{Scheme: "mysql", User: user, Host: host, Path: database}).String()
}

func javaURL(s *servertest.Scene) string {
	if s.Env.Driver == "sqlite" {
		return "jdbc:sqlite:" + file(s)
	}
	user, host, database := address(s)
	password, _ := user.Password()
	settings := url.Values{"user": {user.Username()}, "password": {password}}
	if s.Env.Driver == "pgx" {
		return "jdbc:postgresql://" + host + "/" + database + "?" + settings.Encode()
	}
	settings.Set("allowPublicKeyRetrieval", "true")
	return "jdbc:mariadb://" + host + "/" + database + "?" + settings.Encode()
}

// token is that of a process which was told to lock.
func token(tb testing.TB, p process) (t lease.Token) {
	tb.Helper()
	said, ok := strings.CutPrefix(p.Receive(), "token ")
	if err := t.UnmarshalText([]byte(said)); !ok || err != nil {
		tb.Fatalf("the process said %q, want a token: %v", said, err)
	}
	return t
}

// ask sends a line and fails the test unless the answer is want.
func ask(tb testing.TB, p process, line, want string) {
	tb.Helper()
	p.Send(line)
	if said := p.Receive(); said != want {
		tb.Errorf("%s: the process said %q, want %q", line, said, want)
	}
}
