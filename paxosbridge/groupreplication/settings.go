package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// smallest is the size of a group that can lose a member and go on.
	smallest = 3
	// atLeast is the size of one whose majority is more than one: what it acknowledges is in two places.
	atLeast = 2
)

var (
	errNoGroup = fmt.Errorf("%w: this server is a member of no group: start it with group_replication_start_on_boot, or START GROUP_REPLICATION", lease.ErrTopology)
	// errNotPrimary is no refusal: another is, or will be.
	errNotPrimary = errors.New("not the group's primary")
)

// view is what a member thinks of the group.
type view struct {
	state, role        string
	members, reachable int
}

// leads returns nil for a primary that has the majority with it, in a group of at least so many.
func (v view) leads(least int) error {
	switch {
	case v.state != "ONLINE" || v.role != "PRIMARY":
		return fmt.Errorf("%w: it is %s %s", errNotPrimary, v.state, v.role)
	case 2*v.reachable <= v.members:
		return fmt.Errorf("%w: it reaches %d of %d members, and no majority", errNotPrimary, v.reachable, v.members)
	case v.members < least:
		return fmt.Errorf("%w: the group has %d members and needs %d: what is acknowledged must be in more than one place; start the others", lease.ErrTopology, v.members, least)
	}
	return nil
}

// settings are a server's global variables. One that the server does not know is absent.
type settings map[string]string

func readSettings(ctx context.Context, conn *sql.Conn, query string) (settings, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	s := make(settings)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		s[name] = value
	}
	return s, rows.Err()
}

// demands are the settings without which something acknowledged can be lost.
var demands = []struct {
	name, cure string
	values     []string
}{
	{"group_replication_single_primary_mode", "with several primaries row locks are local to one; SELECT group_replication_switch_to_single_primary_mode()", []string{"ON"}},
	{"group_replication_exit_state_action", "a member that was expelled must not go on writing; use READ_ONLY, OFFLINE_MODE or ABORT_SERVER", []string{"READ_ONLY", "OFFLINE_MODE", "ABORT_SERVER"}},
	{"innodb_flush_log_at_trx_commit", "when all members lose their power what was acknowledged is forgotten; set it to 1", []string{"1"}},
	{"sync_binlog", "when all members lose their power what was acknowledged is forgotten; set it to 1", []string{"1"}},
	{"binlog_error_action", "a server that cannot write its binary log would go on without, and tell nobody; set it to ABORT_SERVER", []string{"ABORT_SERVER"}},
}

// check names the first setting that is not to be trusted.
func (s settings) check() error {
	if s["group_replication_group_name"] == "" {
		return errNoGroup
	}
	for _, d := range demands {
		if v := s[d.name]; !isOneOf(v, d.values) {
			return fmt.Errorf("%w: %s is %s: %s", lease.ErrTopology, d.name, v, d.cure)
		}
	}
	return nil
}

func isOneOf(v string, values []string) bool {
	for _, w := range values {
		if v == w {
			return true
		}
	}
	return false
}
