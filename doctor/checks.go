package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// check is one that has an id.
type check struct {
	id string
	// on are the databases that have what it checks. None: all of them.
	on  []string
	run func(context.Context, *examiner) (Finding, error)
	// grant is what a user lacks who may not read what it reads, by database.
	grant map[string]string
}

var checks = []check{
	{id: "server", run: server},
	{id: "read-only", run: readOnly},
	{id: "topology", on: []string{"mysql"}, run: topology},
	{id: "replication", on: []string{"postgres", "mysql"}, run: replication, grant: monitor},
	{id: "semi-sync", on: []string{"mysql"}, run: semiSync},
	{id: "pooler", on: []string{"postgres"}, run: pooler},
	{id: "encryption", on: []string{"postgres", "mysql"}, run: encryption},
	{id: "isolation", run: isolation},
	{id: "durability", run: durability},
	{id: "timeouts", run: timeouts},
	{id: "connections", run: connections},
	{id: "clock", run: clock},
	{id: "schema", run: schema},
	{id: "tables", run: tables},
	{id: "privileges", on: []string{"postgres", "mysql"}, run: privileges},
	{id: "open", run: opens},
	{id: "bad-rows", run: badRows},
	{id: "bloat", on: []string{"postgres", "sqlite"}, run: bloat},
	{id: "horizon", run: horizon, grant: monitor},
	{id: "dead-rows", run: deadRows},
	{id: "orphans", run: orphans},
	{id: "deadlocks", run: deadlocks},
	{id: "transitions", run: transitions},
}

// IDs returns the id of every check, in their order. An id is never given another meaning.
func IDs() []string {
	ids := make([]string, len(checks))
	for i, c := range checks {
		ids[i] = c.id
	}
	return ids
}

func (o Options) checkIDs() error {
	known := IDs()
	for _, id := range slices.Concat(o.Only, o.Skip) {
		if !slices.Contains(known, id) {
			return fmt.Errorf("%w: doctor: there is no check %q: choose of %s", lease.ErrConfig, id,
				strings.Join(known, ", "))
		}
	}
	return nil
}

func (o Options) wants(c check, dialect string) bool {
	return (c.on == nil || slices.Contains(c.on, dialect)) &&
		(len(o.Only) == 0 || slices.Contains(o.Only, c.id)) && !slices.Contains(o.Skip, c.id)
}
