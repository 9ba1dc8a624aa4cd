package house

// What stands for several packages in the tables below.
var groups = map[string][]string{
	"drivers": {
		"github.com/jackc/pgx", "github.com/lib/pq", "github.com/go-sql-driver/mysql",
		"modernc.org/sqlite", "github.com/mattn/go-sqlite3",
		"go.etcd.io/etcd",
	},
	"test helpers": {
		"testing", "github.com/anishathalye/porcupine", "pgregory.net/rapid",
		"github.com/stretchr/testify", "github.com/DATA-DOG/go-sqlmock",
		"go.uber.org/goleak", "./locktest", "./internal/testdb", "./internal/faultdb", "./memstore",
		"./internal/memcluster", "./internal/counted", "./internal/standby", "./internal/lossy",
		"./internal/race", "./paxosbridge/clustertest",
		"./internal/clienttest", "./internal/servertest", "./internal/adaptertest",
	},
	// They import the standard library and lease at most, so that any package may use them.
	"leaves": {
		"./internal/isnil", "./internal/oneline", "./internal/adapter",
		"./internal/cleanup", "./internal/tell", "./internal/late",
	},
	"store":    {"./internal/table", "./internal/era", "./internal/retry"},
	"programs": {"./examples", "./bench", "./cmd", "./internal/attack/mutants", "./internal/attack/chaos"},
}

// bans are the imports that must not be: the package imports none of these, directly or through
// others. "anything else" leaves it the standard library and what is listed with it.
var bans = []struct {
	pkg, not string
	except   []string
	because  string
}{
	{".", "drivers", nil, "a user gets the driver of the one database they have, with its dialect"},
	{
		".", "github.com/pressly/goose", nil,
		"goose requires the drivers of a dozen databases; a user with other migrations does not want it",
	},
	{".", "./schema", nil, "tables are made by a tool of the user's choice"},
	{".", "./internal/table", nil, "a client knows its store, and no database"},
	{".", "./internal/conn", nil, "a client knows its store, and no database"},
	{".", "./internal/sqlstore", nil, "a client knows its store, and no database"},
	{".", "./dialect/postgres", nil, "a dialect is the user's choice"},
	{".", "./dialect/mysql", nil, "a dialect is the user's choice"},
	{".", "./dialect/sqlite", nil, "a dialect is the user's choice"},
	{".", "test helpers", nil, "they end up in the user's program, flags and all"},
	{".", "programs", nil, "a library is not made of programs"},
	{
		"./lease", "anything else", nil,
		"a store can be written against it without taking anything along",
	},
	{"./watchdog", "anything else", []string{"./lease", "leaves"}, "it keeps the leases of any store"},
	{"./reaper", "anything else", []string{"./lease", "leaves"}, "it sweeps any store"},
	{
		"./dialect", "anything else",
		[]string{"./lease", "leaves"},
		"it is a description; the rooms have the drivers",
	},
	{"./dialect/postgres", "drivers", []string{"github.com/jackc/pgx"}, "one room, one driver"},
	{"./dialect/mysql", "drivers", []string{"github.com/go-sql-driver/mysql"}, "one room, one driver"},
	{"./dialect/sqlite", "drivers", []string{"modernc.org/sqlite"}, "one room, one driver"},
	{
		"./dialect/postgres", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "store", "leaves"},
		"a room fills in what the store asks for, and names the store that opens its tables",
	},
	{
		"./dialect/mysql", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "store", "leaves"},
		"a room fills in what the store asks for, and names the store that opens its tables",
	},
	{
		"./dialect/sqlite", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "store", "leaves"},
		"a room fills in what the store asks for, and names the store that opens its tables",
	},
	{
		"./internal/sqlstore", "anything else",
		[]string{"./lease", "./internal/sqlstore", "./internal/conn", "leaves"},
		"it is a description; the rooms have the drivers",
	},
	{"./internal/conn", "drivers", nil, "a connection does not know what its statements say"},
	{"./internal/conn", "./internal/sqlstore", nil, "a connection does not know what its statements say"},
	{"./internal/queue", ".", nil, "it knows no handles: its caller watches what it is granted"},
	{"./internal/queue", "drivers", nil, "a queue does not know how a store is asked"},
	{"./internal/queue", "./internal/table", nil, "a queue does not know how a store is asked"},
	{"./internal/table", "drivers", nil, "only a dialect knows its database"},
	{"./internal/table", "test helpers", nil, "it is part of the user's program"},
	{"./optimistic", "drivers", nil, "only a dialect knows its database"},
	{"./optimistic", "./schema", nil, "it creates nothing"},
	{"./optimistic", "test helpers", nil, "it is part of the user's program"},
	{".", "./optimistic", nil, "a user of locks does not want the mapper of structs"},
	{"./once", "drivers", nil, "it is given a dialect and a pool"},
	{
		"./once", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "./internal/opening", "leaves", "./internal/retry"},
		"a transaction of the application's needs no pinned connections",
	},
	{"./once", "test helpers", nil, "it is part of the user's program"},
	{"./once", "net/http", nil, "a consumer of a message queue has no use for it"},
	{"./once/oncehttp", "drivers", nil, "it speaks HTTP, and package once to the database"},
	{"./once/oncehttp", "./dialect/postgres", nil, "a dialect is the user's choice"},
	{"./once/oncehttp", "./dialect/mysql", nil, "a dialect is the user's choice"},
	{"./once/oncehttp", "./dialect/sqlite", nil, "a dialect is the user's choice"},
	{".", "./once", nil, "a lock needs no transaction of the application's"},
	{"./latch", "drivers", nil, "it is given a dialect and a pool"},
	{
		"./latch", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "./internal/opening", "leaves", "./internal/retry"},
		"it waits for parties, and has nothing to do with the machines of a client",
	},
	{"./latch", "test helpers", nil, "it is part of the user's program"},
	{".", "./latch", nil, "most users of locks have no parties"},
	{"./striped", "drivers", nil, "it is names of keys, and the client knows the rest"},
	{"./striped", "test helpers", nil, "it is part of the user's program"},
	{".", "./striped", nil, "it stands on the client"},
	{"./tokenfence", "drivers", nil, "only a dialect knows its database"},
	{
		"./tokenfence", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "./internal/ownrows", "leaves"},
		"the data's database has no pinned connections and no tables of rowlock's",
	},
	{"./tokenfence", "./schema", nil, "it creates nothing"},
	{"./tokenfence", "test helpers", nil, "it is part of the user's program"},
	{".", "./tokenfence", nil, "most data is in the lock's database, where Fence is better"},
	{"./election", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./election", "./dialect/postgres", nil, "a dialect is the user's choice"},
	{"./election", "./dialect/mysql", nil, "a dialect is the user's choice"},
	{"./election", "./dialect/sqlite", nil, "a dialect is the user's choice"},
	{"./election", "./schema", nil, "an election has no tables"},
	{"./election", "test helpers", nil, "it is part of the user's program"},
	{".", "./election", nil, "a lock needs no election"},
	{"./doctor", "drivers", nil, "it is given a dialect and a pool"},
	{"./doctor", "./schema", nil, "it creates nothing"},
	{
		"./doctor", "./internal",
		[]string{
			"./internal/sqlstore", "./internal/keytext", "./internal/table", "./internal/era", "./internal/conn",
			"./internal/retry", "./internal/ring", "./internal/notice", "leaves",
		},
		"it reads, opens a store as a client does, and has nothing else to do with the machines of a client",
	},
	{"./doctor", "test helpers", nil, "it is part of the user's program"},
	{".", "./doctor", nil, "a lock needs no examination"},
	{"./quorum", "drivers", nil, "it stands on stores, whatever they are made of"},
	{"./quorum", "./internal", []string{"leaves", "./internal/retry"}, "it stands on stores, whatever they are made of"},
	{"./quorum", "./schema", nil, "it creates nothing"},
	{"./quorum", "test helpers", nil, "it is part of the user's program"},
	{".", "./quorum", nil, "most users have one database, where Fence is better"},
	{"./forupdate", "drivers", nil, "only a dialect knows its database"},
	{"./forupdate", "test helpers", nil, "it is part of the user's program"},
	{"./forupdate", "github.com/pressly/goose", nil, "a user of locks need not migrate with it"},
	{"./paxosbridge", "drivers", nil, "a user gets the cluster they have, and no other"},
	{
		"./paxosbridge", "./internal",
		[]string{"leaves"},
		"it stands on stores, whatever they are made of",
	},
	{"./paxosbridge", "test helpers", nil, "it is part of the user's program"},
	{".", "./paxosbridge", nil, "most keys never move"},
	{
		"./paxosbridge/clustertest", "./internal",
		[]string{"leaves"},
		"it is public: an author of a cluster must be able to use all of it",
	},
	{
		"./paxosbridge/groupreplication", "drivers",
		[]string{"github.com/go-sql-driver/mysql"},
		"its groups are MySQL's",
	},
	{"./paxosbridge/groupreplication", "./schema", nil, "it creates nothing"},
	{"./paxosbridge/groupreplication", "test helpers", nil, "it is part of the user's program"},
	{"./schema", "drivers", nil, "it is given a dialect and a pool"},
	{".", "./paxosbridge", nil, "a user with only a database has no cluster"},
	{
		"./paxosbridge/etcd", "drivers",
		[]string{"go.etcd.io/etcd"},
		"one room, one client: the database is the bridge's other end",
	},
	{
		"./paxosbridge/etcd", "./internal",
		[]string{"leaves", "./internal/retry"},
		"the cluster is not the table's",
	},
	{"./paxosbridge/etcd", "test helpers", nil, "it is part of the user's program"},
	{"./otelrowlock", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./otelrowlock", "github.com/prometheus", nil, "a program gets the framework that it has"},
	{"./otelrowlock", "go.opentelemetry.io/otel/sdk", nil, "an application chooses its SDK"},
	{"./otelrowlock", "test helpers", nil, "it is part of the user's program"},
	{"./promrowlock", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./promrowlock", "go.opentelemetry.io", nil, "it is for programs without OpenTelemetry"},
	{"./promrowlock", "test helpers", nil, "it is part of the user's program"},
	{"./adapters/gocron", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/gocron", "test helpers", nil, "it is part of the user's program"},
	{"./adapters/certmagic", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/certmagic", "test helpers", nil, "it is part of the user's program"},
	{"./adapters/client-go", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/client-go", "test helpers", nil, "it is part of the user's program"},
	{"./adapters/goose", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/goose", "test helpers", []string{"testing"}, "it is part of the user's program; goose imports testing"},
	{"./adapters/migrate", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/migrate", "test helpers", nil, "it is part of the user's program"},
	{"./adapters/robfig", "drivers", nil, "it is given a client, and speaks to no database"},
	{"./adapters/robfig", "test helpers", nil, "it is part of the user's program"},
	{"./shedlock", "drivers", nil, "it is given a dialect and a pool"},
	{
		"./shedlock", "./internal",
		[]string{"./internal/sqlstore", "./internal/conn", "leaves", "./internal/retry"},
		"its table is ShedLock's: it has nothing to do with the machines of a client",
	},
	{"./transition", "drivers", nil, "it is given pools and clients"},
	{"./transition", "test helpers", nil, "it is part of the user's program"},
	{"./shedlock", "test helpers", nil, "it is part of the user's program"},
	{
		"./wlock", "anything else",
		[]string{"./lease", "./wlock/internal/frame"},
		"it speaks to a service of others, and needs a socket",
	},
	{".", "./internal/measure", nil, "a lock needs no metrics"},
	{
		"./paxosbridge/internal/model", "anything else", nil,
		"a specification must not depend on what it specifies",
	},
	{
		"./memstore", "anything else",
		[]string{"./lease", "leaves"},
		"a user's test that needs no database needs nothing else either",
	},
	{
		"./memstore", "testing", nil,
		"a demonstration may keep its locks in memory too, without the flags of package testing",
	},
	{"./locktest", "drivers", nil, "it tests stores that have nothing to do with databases"},
	{"./locktest", "./dialect", nil, "it tests stores that have nothing to do with databases"},
	{
		"./locktest", "./internal",
		[]string{"leaves"},
		"it is public: an author of a store must be able to use all of it",
	},
}

// onlies are packages that only these may import directly, so that no other user gets them.
var onlies = []struct {
	pkg, because string
	in           []string
}{
	{
		"github.com/jackc/pgx", "the room of its database",
		[]string{
			"./dialect/postgres", "./internal/testdb", "./internal/standby", "./internal/attack",
			"./internal/house/lockpath", "./examples", "./cmd",
		},
	},
	{
		"github.com/go-sql-driver/mysql", "the room of its database",
		[]string{
			"./dialect/mysql", "./internal/testdb", "./internal/standby", "./internal/attack",
			"./examples", "./cmd",
		},
	},
	{
		"modernc.org/sqlite", "the room of its database",
		[]string{"./dialect/sqlite", "./internal/testdb", "./internal/attack", "./examples"},
	},
	{
		"go.etcd.io/etcd", "the room of its cluster",
		[]string{"./paxosbridge/etcd", "./internal/attack", "./examples", "./cmd"},
	},
	{"github.com/pressly/goose", "migrations are optional", []string{"./adapters/goose", "./examples"}},
	{
		"testing", "it is for tests; schema has its file system in memory",
		[]string{
			"./locktest", "./paxosbridge/clustertest", "./internal/testdb", "./internal/movetest", "./internal/race",
			"./internal/standby", "./internal/clienttest", "./internal/servertest", "./internal/adaptertest", "./schema",
			"./internal/drivers/refused", "./internal/table/conformance",
			"./examples/internal/program", "./examples/stacks/internal/bed",
		},
	},
}
