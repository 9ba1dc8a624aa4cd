package rowlock_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rowlockdb/rowlock"

// What stands for several packages in the tables below.
var groups = map[string][]string{
	"drivers": {
		"github.com/jackc/pgx", "github.com/lib/pq", "github.com/go-sql-driver/mysql", "modernc.org/sqlite", "github.com/mattn/go-sqlite3",
		"go.etcd.io/etcd",
	},
	"test helpers": {
		"testing", "github.com/anishathalye/porcupine", "pgregory.net/rapid", "github.com/stretchr/testify", "github.com/DATA-DOG/go-sqlmock",
		"go.uber.org/goleak", "./locktest", "./internal/testdb", "./internal/faultdb", "./memstore",
		"./internal/memcluster", "./internal/counted", "./internal/standby", "./internal/lossy", "./paxosbridge/clustertest",
	},
	"leaves":   {"./internal/isnil", "./internal/oneline", "./internal/allkeys"},
	"programs": {"./examples", "./bench", "./cmd", "./internal/attack/mutants"},
}

// bans are the arrows that must not be: the package imports none of these, directly or through others. "anything
// else" leaves it the standard library and what is listed with it.
var bans = []struct {
	pkg, not string
	except   []string
	because  string
}{
	{".", "drivers", nil, "a user gets the driver of the one database they have, with its dialect"},
	{".", "github.com/pressly/goose", nil, "goose requires the drivers of a dozen databases; who migrates otherwise does not want it"},
	{".", "./schema", nil, "it is how goose would come in"},
	{".", "./dialect/postgres", nil, "a dialect is the user's choice"},
	{".", "./dialect/mysql", nil, "a dialect is the user's choice"},
	{".", "./dialect/sqlite", nil, "a dialect is the user's choice"},
	{".", "test helpers", nil, "they end up in the user's program, flags and all"},
	{".", "programs", nil, "a library is not made of programs"},
	{"./lease", "anything else", nil, "a store can be written against it without taking anything along"},
	{"./watchdog", "anything else", []string{"./lease"}, "it keeps the leases of any store"},
	{"./reaper", "anything else", []string{"./lease"}, "it sweeps any store"},
	{"./dialect", "anything else", []string{"./lease", "./internal/sqlstore", "leaves"}, "it is a description; the rooms have the drivers"},
	{"./dialect/postgres", "drivers", []string{"github.com/jackc/pgx"}, "one room, one driver"},
	{"./dialect/mysql", "drivers", []string{"github.com/go-sql-driver/mysql"}, "one room, one driver"},
	{"./dialect/sqlite", "drivers", []string{"modernc.org/sqlite"}, "one room, one driver"},
	{"./dialect/postgres", "./internal", []string{"./internal/sqlstore", "leaves"}, "a room fills in what the store asks for, and uses nothing of it"},
	{"./dialect/mysql", "./internal", []string{"./internal/sqlstore", "leaves"}, "a room fills in what the store asks for, and uses nothing of it"},
	{"./dialect/sqlite", "./internal", []string{"./internal/sqlstore", "leaves"}, "a room fills in what the store asks for, and uses nothing of it"},
	{"./internal/sqlstore", "anything else", []string{"./lease", "./internal/sqlstore", "leaves"}, "it is a description; the rooms have the drivers"},
	{"./internal/lane", "drivers", nil, "a lane does not know what its statements say"},
	{"./internal/waitq", "anything else", nil, "who waits here has nothing to do with how a store is asked"},
	{"./internal/table", "drivers", nil, "only a dialect knows its database"},
	{"./internal/table", "test helpers", nil, "it is part of the user's program"},
	{"./optimistic", "drivers", nil, "only a dialect knows its database"},
	{"./optimistic", "./schema", nil, "it creates nothing"},
	{"./optimistic", "test helpers", nil, "it is part of the user's program"},
	{".", "./optimistic", nil, "who locks rows does not want the mapper of structs"},
	{"./once", "drivers", nil, "it is given a dialect and a pool"},
	{"./once", "./internal", []string{"./internal/sqlstore", "leaves", "./internal/txend"}, "a transaction of the application's needs no lanes"},
	{"./once", "test helpers", nil, "it is part of the user's program"},
	{"./once", "net/http", nil, "who takes messages from a queue has no use for it"},
	{"./once/oncehttp", "drivers", nil, "it speaks HTTP, and package once to the database"},
	{"./once/oncehttp", "./dialect/postgres", nil, "a dialect is the user's choice"},
	{"./once/oncehttp", "./dialect/mysql", nil, "a dialect is the user's choice"},
	{"./once/oncehttp", "./dialect/sqlite", nil, "a dialect is the user's choice"},
	{".", "./once", nil, "a lock needs no transaction of the application's"},
	{"./forupdate", "drivers", nil, "only a dialect knows its database"},
	{"./forupdate", "test helpers", nil, "it is part of the user's program"},
	{"./forupdate", "github.com/pressly/goose", nil, "who locks rows need not migrate with it"},
	{"./paxosbridge", "drivers", nil, "a user gets the cluster they have, and no other"},
	{"./paxosbridge", "./internal", []string{"./internal/seam", "leaves"}, "it stands on stores, whatever they are made of"},
	{"./paxosbridge", "test helpers", nil, "it is part of the user's program"},
	{".", "./paxosbridge", nil, "most keys never move"},
	{"./paxosbridge/clustertest", "./internal", []string{"./internal/seam", "leaves"}, "it is public: whoever writes a cluster must be able to use all of it"},
	{"./paxosbridge/groupreplication", "drivers", []string{"github.com/go-sql-driver/mysql"}, "its groups are MySQL's"},
	{"./paxosbridge/groupreplication", "./schema", nil, "it creates nothing"},
	{"./paxosbridge/groupreplication", "test helpers", nil, "it is part of the user's program"},
	{"./schema", "drivers", nil, "it is given a dialect and a pool"},
	{"./schema", "./internal", []string{"./internal/sqlstore", "leaves"}, "tables can be made without a client"},
	{".", "./paxosbridge", nil, "who has only a database has no cluster"},
	{"./paxosbridge/etcd", "drivers", []string{"go.etcd.io/etcd"}, "one room, one client: the database is the bridge's other end"},
	{"./paxosbridge/etcd", "./internal", []string{"./internal/seam", "leaves"}, "the cluster is not the table's"},
	{"./paxosbridge/etcd", "test helpers", nil, "it is part of the user's program"},
	{"./paxosbridge/internal/model", "anything else", nil, "a specification must not depend on what it specifies"},
	{"./memstore", "anything else", []string{"./lease", "leaves"}, "a user's test that needs no database needs nothing else either"},
	{"./memstore", "testing", nil, "a demonstration may keep its locks in memory too, without the flags of package testing"},
	{"./locktest", "drivers", nil, "it tests stores that have nothing to do with databases"},
	{"./locktest", "./dialect", nil, "it tests stores that have nothing to do with databases"},
	{"./locktest", "./internal", []string{"./internal/seam"}, "it is public: whoever writes a store must be able to use all of it"},
}

// onlies are packages that only these may import directly, so that nobody gets them who did not ask.
var onlies = []struct {
	pkg, because string
	in           []string
}{
	{"github.com/jackc/pgx", "the room of its database", []string{"./dialect/postgres", "./internal/testdb", "./internal/standby", "./internal/attack", "./examples"}},
	{"github.com/go-sql-driver/mysql", "the room of its database", []string{"./dialect/mysql", "./internal/testdb", "./internal/attack", "./examples"}},
	{"modernc.org/sqlite", "the room of its database", []string{"./dialect/sqlite", "./internal/testdb", "./internal/attack", "./examples"}},
	{"go.etcd.io/etcd", "the room of its cluster", []string{"./paxosbridge/etcd", "./internal/attack", "./examples"}},
	{"github.com/pressly/goose", "migrations are optional", []string{"./schema", "./examples"}},
	{"testing", "it is for tests; schema has its file system in memory", []string{"./locktest", "./paxosbridge/clustertest", "./internal/testdb", "./internal/movetest", "./internal/standby", "./schema", "./examples/internal/program"}},
}

// imports is a package as go list shows it, without its tests.
type imports struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImportsRunOneWay(t *testing.T) {
	all := listImports(t)
	for _, ban := range bans {
		p, ok := all[ban.pkg]
		if !ok {
			t.Errorf("%s is not there any more: take it off the list, or mend the list", ban.pkg)
			continue
		}
		for _, dep := range p.Deps {
			if isBanned(dep, ban.not) && !isOneOf(dep, expand(ban.except)) {
				t.Errorf("%s must not import %s: %s", ban.pkg, dep, ban.because)
			}
		}
	}
	for _, only := range onlies {
		importers := 0
		for path, p := range all {
			if !slices.ContainsFunc(p.Imports, func(i string) bool { return isIn(i, only.pkg) }) {
				continue
			}
			importers++
			if !isOneOf(path, only.in) {
				t.Errorf("%s must not import %s, which is for %q: %s", path, only.pkg, only.in, only.because)
			}
		}
		if importers == 0 {
			t.Errorf("nobody imports %s any more: take it off the list", only.pkg)
		}
	}
	for path, p := range all {
		for _, i := range p.Imports {
			if isOneOf(i, groups["programs"]) && !isOneOf(path, groups["programs"]) {
				t.Errorf("%s must not import %s, which is a program", path, i)
			}
		}
	}
}

// listed are the modules whose packages the tables name. One go list a module works with and without
// go.work; ./... in the root enters none of the others.
var listed = []string{".", "examples", "internal/attack", "paxosbridge/etcd"}

// listImports returns the packages of the listed modules. Their paths, and those of one another, begin with "." instead of the
// root's module path.
func listImports(t *testing.T) map[string]imports {
	t.Helper()
	all := make(map[string]imports)
	for _, dir := range listed {
		cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		addImports(t, all, string(out))
	}
	return all
}

func addImports(t *testing.T, all map[string]imports, list string) {
	t.Helper()
	short := func(path *string) {
		if rest, ok := strings.CutPrefix(*path, module); ok {
			*path = "." + rest
		}
	}
	for dec := json.NewDecoder(strings.NewReader(list)); ; {
		var p imports
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		short(&p.ImportPath)
		for _, list := range [][]string{p.Imports, p.Deps} {
			for i := range list {
				short(&list[i])
			}
		}
		all[p.ImportPath] = p
	}
}

func isBanned(dep, what string) bool {
	switch list, ok := groups[what]; {
	case ok:
		return isOneOf(dep, list)
	case what == "anything else":
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".") // all but the standard library
	}
	return isIn(dep, what)
}

// expand puts the packages of a group in the place of its name.
func expand(list []string) (paths []string) {
	for _, p := range list {
		if group, ok := groups[p]; ok {
			paths = append(paths, group...)
		} else {
			paths = append(paths, p)
		}
	}
	return paths
}

func isOneOf(path string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return isIn(path, p) })
}

// isIn says whether path is parent or below it. "." has nothing below it.
func isIn(path, parent string) bool {
	return path == parent || parent != "." && strings.HasPrefix(path, parent+"/")
}
