package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// smallest is the size of a group that survives the loss of a member.
	smallest = 3
	// atLeast is the smallest size at which an acknowledged write is on two members.
	atLeast = 2
)

var (
	errNoGroup = fmt.Errorf(
		"%w: the server is not a member of a group: run START GROUP_REPLICATION, or set "+
			"group_replication_start_on_boot",
		lease.ErrTopology,
	)
	// errNotPrimary is no refusal, because another member is the primary, or will be.
	errNotPrimary = errors.New("rowlock: groupreplication: not the group's primary")
)

// view is what a member knows of the group.
type view struct {
	state, role        string
	members, reachable int
}

// leads returns nil for a primary that reaches a majority, in a group of at least so many members.
func (v view) leads(least int) error {
	switch {
	case v.state != "ONLINE" || v.role != "PRIMARY":
		return fmt.Errorf("%w: its state is %s, its role %s", errNotPrimary, v.state, v.role)
	case 2*v.reachable <= v.members:
		return fmt.Errorf(
			"%w: it reaches %d of %d members, which is no majority", errNotPrimary, v.reachable,
			v.members,
		)
	case v.members < least:
		return fmt.Errorf(
			"%w: the group has %d members and needs %d, so that an acknowledged write survives a failure: "+
				"start the other members",
			lease.ErrTopology, v.members, least,
		)
	}
	return nil
}

// settings are a server's global variables, without those that the server does not know.
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

// demands are the settings without which an acknowledged write can be lost.
var demands = []struct {
	name, cure string
	values     []string
}{
	{
		"group_replication_single_primary_mode",
		"several primaries do not see each other's row locks: SELECT group_replication_switch_to_single_primary_mode()",
		[]string{"ON"},
	},
	{
		"group_replication_exit_state_action",
		"an expelled member must not accept writes: set it to READ_ONLY, OFFLINE_MODE or ABORT_SERVER",
		[]string{"READ_ONLY", "OFFLINE_MODE", "ABORT_SERVER"},
	},
	{"innodb_flush_log_at_trx_commit", powerLoss, []string{"1"}},
	{"sync_binlog", powerLoss, []string{"1"}},
	{
		"binlog_error_action",
		"a server that cannot write its binary log would go on silently without it: set it to ABORT_SERVER",
		[]string{"ABORT_SERVER"},
	},
}

const powerLoss = "if all members lose power, acknowledged writes are lost: set it to 1"

// check names the first setting under which an acknowledged write can be lost.
func (s settings) check() error {
	if s["group_replication_group_name"] == "" {
		return errNoGroup
	}
	for _, d := range demands {
		if v := s[d.name]; !slices.Contains(d.values, v) {
			return fmt.Errorf("%w: %s is %s: %s", lease.ErrTopology, d.name, v, d.cure)
		}
	}
	return nil
}
