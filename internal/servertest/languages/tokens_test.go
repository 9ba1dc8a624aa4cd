package languages

import (
	"encoding/json"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// granted are the tokens of a key, each while it is held: 1 to 16, and sixteen in an era of today.
func granted(s *servertest.Scene) iter.Seq[lease.Token] {
	return func(yield func(lease.Token) bool) {
		for range 2 {
			locks := s.Client()
			for range 16 {
				l := s.Take(locks, "k")
				if !yield(l.Token()) {
					return
				}
				s.OK(l.Unlock(s.Context()))
			}
			s.OK(locks.Close())
			s.Env.ForgetEras(s) // as after a failover: the next client begins one
		}
	}
}

// sameDouble reports whether a program that keeps numbers as doubles takes two tokens for one.
func sameDouble(a, b lease.Token) bool { return float64(a) == float64(b) }

// Tokens of an era of today have 18 digits, and a double keeps one of sixteen.
func TestADoubleKeepsOneTokenOfSixteen(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		digits, doubles := map[int]int{}, map[float64]bool{}
		for token := range granted(s) {
			digits[len(token.String())]++
			if token > 1e17 {
				doubles[float64(token)] = true
			}
		}
		if digits[18] != 16 || len(doubles) > 2 { // two, where the sixteen straddle a bound
			s.Errorf("tokens by their digits: %v; the latter sixteen are %d doubles", digits, len(doubles))
		}
	})
}

// byItself is what JavaScript's drivers make by themselves of 10 after 9, and of a token after one
// that is the same double.
var byItself = map[string][2]string{
	"pg":             {"older", "newer"}, // a string: "9" is above "10"
	"mysql2":         {"newer", "same"},
	"better-sqlite3": {"newer", "same"},
	"node:sqlite":    {"newer", "ERR_OUT_OF_RANGE"},
	"JSON":           {"newer", "same"}, // of a number: Token is a string in JSON
}

// Programs in JavaScript read the row of a key at each grant. Compared as docs/fencing.md says, the
// newer token is known for the newer; as numbers, and as most drivers return it, it is not.
func TestJavaScriptComparesTokensAsBigIntAndAsText(t *testing.T) {
	drivers := map[string][]string{
		"sqlite": {"better-sqlite3", "node:sqlite", "JSON"}, "pgx": {"pg"}, "mysql": {"mysql2"},
	}
	servertest.Each(t, func(s *servertest.Scene) {
		programs := map[string]*program{}
		for _, driver := range drivers[s.Env.Driver] {
			programs[driver] = node(s, driver)
		}
		last, rounded := lease.Token(0), 0
		for token := range granted(s) {
			line, err := json.Marshal(map[string]any{"token": token, "number": int64(token), "text": token.Text()})
			s.OK(err)
			for driver, p := range programs {
				want := map[string]string{"BigInt": "newer", "text": "newer", "Number": "newer", "plain": byItself[driver][0]}
				if sameDouble(last, token) {
					want["Number"], want["plain"] = "same", byItself[driver][1]
					rounded++
				}
				p.Send(string(line))
				said := map[string]string{}
				s.OK(json.Unmarshal([]byte(p.Receive()), &said))
				if (last == 9 || sameDouble(last, token)) && !maps.Equal(said, want) {
					s.Errorf("%s: %d after %d is %v, want %v", driver, token, last, said, want)
				}
			}
			last = token
		}
		if rounded == 0 {
			s.Error("no two successive tokens were one double")
		}
	})
}

// node starts the program that compares the tokens of the scene's one row.
func node(s *servertest.Scene, driver string) *program {
	s.Helper()
	program, err := filepath.Abs("testdata/tokens.js")
	s.OK(err)
	return start(s, exec.Command(testdb.Installed(s, "node"), "--no-warnings", program, driver, sourceURL(s),
		"SELECT token FROM "+s.Env.Table("rowlock")))
}

// A holder writes to Redis behind the fence of examples/languages, and the one before it is
// refused. As numbers, or as digits that are not all of one length, it passes.
func TestRedisComparesTokensAsText(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		server := testdb.Installed(s, "redis")
		text, err := os.ReadFile(filepath.Join(examples, "fence.lua"))
		s.OK(err)
		fence := string(text)
		numbers := without(s, fence, "token < newest", "tonumber(token) < tonumber(newest)")
		anyLength := without(s, fence, "#token ~= 19 or ", "")
		late := func(what, script, older, newer, want string) {
			s.Helper()
			key := s.Env.Table("fence")
			defer redis(s, server, "DEL", key)
			if said := redis(s, server, "EVAL", script, "1", key, newer, "new"); said != "written" {
				s.Errorf("%s: %s: Redis said %q, want it written", what, newer, said)
			}
			if said := redis(s, server, "EVAL", script, "1", key, older, "old"); !strings.HasPrefix(said, want) {
				s.Errorf("%s: %s after %s: Redis said %q, want it %s", what, older, newer, said, want)
			}
		}
		var last, older, newer lease.Token
		for token := range granted(s) {
			if sameDouble(last, token) {
				older, newer = last, token
			}
			last = token
		}
		late("text", fence, older.Text(), newer.Text(), "refused")
		late("text", fence, lease.Token(9).Text(), lease.Token(10).Text(), "refused")
		late("numbers", numbers, older.Text(), newer.Text(), "written")
		late("digits", anyLength, "9", "10", "written")
		late("digits", fence, "9", lease.Token(10).Text(), "ERR the token is not 19 digits")
	})
}

// without returns a script with one guard changed.
func without(s *servertest.Scene, script, guard, changed string) string {
	s.Helper()
	if strings.Count(script, guard) != 1 {
		s.Fatalf("the script does not have %q once", guard)
	}
	return strings.Replace(script, guard, changed, 1)
}

// redis runs a command.
func redis(s *servertest.Scene, server string, command ...string) string {
	s.Helper()
	out, err := exec.Command("redis-cli", append([]string{"-u", server}, command...)...).CombinedOutput()
	s.OK(err)
	return strings.TrimSpace(string(out))
}
