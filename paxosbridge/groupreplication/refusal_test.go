package groupreplication_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// wantRefusal wants an error of the kind that names the cause.
func wantRefusal(t *testing.T, err error, kind error, name string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), name) {
		t.Errorf("%v; want %v that names %s", err, kind, name)
	}
}

func (r *rig) wantRefused(kind error, name string) {
	r.Helper()
	c, err := r.try()
	if err == nil {
		_ = c.Close()
	}
	wantRefusal(r.TB.(*testing.T), err, kind, name)
}

func TestNewRefusesSettingsThatLoseWrites(t *testing.T) {
	r := newRig(t)
	primary, others := r.roles()
	for _, s := range []struct{ name, bad, good string }{
		{"innodb_flush_log_at_trx_commit", "2", "1"},
		{"sync_binlog", "0", "1"},
		{"binlog_error_action", "IGNORE_ERROR", "ABORT_SERVER"},
	} {
		for _, member := range []int{primary, others[0]} {
			r.execOn(r.dbs[member], `SET GLOBAL `+s.name+` = `+s.bad)
			r.wantRefused(lease.ErrTopology, s.name)
			r.execOn(r.dbs[member], `SET GLOBAL `+s.name+` = `+s.good)
		}
	}
	r.cluster() // none of them is left
}

func TestAMissingContextIsNamed(t *testing.T) {
	dbs := []*sql.DB{new(sql.DB), new(sql.DB), new(sql.DB)}
	var none context.Context
	_, err := groupreplication.New(none, dbs)
	wantRefusal(t, err, lease.ErrConfig, "groupreplication.New: ctx is nil")
	_, err = groupreplication.Primary(none, dbs)
	wantRefusal(t, err, lease.ErrConfig, "groupreplication.Primary: ctx is nil")
}

func TestNewRefusesSeveralPrimaries(t *testing.T) {
	r := newRig(t)
	single := func() { r.execOn(r.dbs[0], `SELECT group_replication_switch_to_single_primary_mode()`) }
	t.Cleanup(single)
	r.execOn(r.dbs[0], `SELECT group_replication_switch_to_multi_primary_mode()`)
	r.wantRefused(lease.ErrTopology, "group_replication_single_primary_mode")
}

func TestNewRefusesServersWithoutAGroup(t *testing.T) {
	r := newRig(t)
	_, err := groupreplication.New(t.Context(), r.dbs[:2])
	wantRefusal(t, err, lease.ErrConfig, "2 pools")
	_, err = groupreplication.New(t.Context(), []*sql.DB{r.dbs[0], nil, r.dbs[2]})
	wantRefusal(t, err, lease.ErrConfig, "member 2")
	// The probe would be seen on a majority.
	_, err = groupreplication.New(t.Context(), []*sql.DB{r.dbs[0], r.dbs[1], r.dbs[0]})
	wantRefusal(t, err, lease.ErrConfig, "members 1 and 3")
	_, err = groupreplication.New(t.Context(), r.dbs, groupreplication.Connections(1))
	wantRefusal(t, err, lease.ErrConfig, "connections")
	_, err = groupreplication.New(t.Context(), r.dbs, groupreplication.Timeout(-1))
	wantRefusal(t, err, lease.ErrConfig, "timeout")
	_, err = groupreplication.New(t.Context(), r.dbs)
	wantRefusal(t, err, lease.ErrNoSchema, "schema.Migrate")
}

// A group of two can go on, and loses nothing with either. A group of one loses everything with it.
func TestAGroupThatHasShrunkIsRefused(t *testing.T) {
	r := newRig(t)
	c := r.cluster(groupreplication.Timeout(2 * time.Second))
	_, others := r.roles()
	stop := func(member int) { r.execOn(r.dbs[member], `STOP GROUP_REPLICATION`) }
	t.Cleanup(func() {
		for _, i := range others {
			r.execOn(r.dbs[i], `START GROUP_REPLICATION`)
		}
	})
	stop(others[0])
	r.wantRefused(lease.ErrTopology, "2 members and needs 3")
	r.release(c, r.hold(c, request("k", 0)))
	stop(others[1])
	var err error
	r.eventually("the last of a group is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err = c.Acquire(ctx, []lease.AcquireRequest{request("alone", 0)}); err == nil {
			return false
		}
		return true
	})
	wantRefusal(t, err, lease.ErrTopology, "1 members and needs 2")
}

// A member that becomes primary later is checked then.
func TestAPrimaryThatLosesWritesIsRefusedWhenElected(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	_, others := r.roles()
	next := r.dbs[others[0]]
	var id string
	r.must(next.QueryRow(`SELECT @@server_uuid`).Scan(&id))
	r.execOn(next, `SET GLOBAL sync_binlog = 100`)
	t.Cleanup(func() { r.execOn(next, `SET GLOBAL sync_binlog = 1`) })
	l := r.hold(c, request("k", 0))
	// The function takes no parameter.
	r.execOn(next, `SELECT group_replication_set_as_primary('`+id+`')`)
	_, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("other", 0)})
	wantRefusal(t, err, lease.ErrTopology, "sync_binlog")
	r.execOn(next, `SET GLOBAL sync_binlog = 1`)
	if r.hold(c, request("other", 0)).Token == 0 {
		t.Error("no token")
	}
	if got, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("k", 0)}); err != nil ||
		got[0].Granted {
		t.Errorf("what is held was answered %+v, %v by the next primary", got, err)
	}
	r.release(c, l)
}
