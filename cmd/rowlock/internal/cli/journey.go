package cli

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/cluster"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// journey moves keys one after another.
type journey struct {
	*moving
	table   paxosbridge.Table
	cluster *cluster.Named
	bridge  *paxosbridge.Bridge
}

// arrival is what became of a key, in JSON.
type arrival struct {
	Key string `json:"key"`
	// Outcome is moved, already, held, half (a move that another process must complete) or
	// elsewhere (the row names a placement that is neither the table nor the cluster).
	Outcome   string `json:"outcome"`
	Placement string `json:"placement"` // where the key is now
	Epoch     int64  `json:"epoch"`
	Holder    string `json:"holder,omitempty"`
	Note      string `json:"note,omitempty"`
}

// there reports whether the key is where it was to go.
func (a arrival) there() bool { return a.Outcome == "moved" || a.Outcome == "already" }

// take moves a key, and waits for its holder.
func (j *journey) take(ctx context.Context, key string) (arrival, error) {
	for end := time.Now().Add(j.wait); ; {
		row, holder, err := j.look(ctx, key)
		if err == nil {
			err = j.learn(ctx, key, row)
		}
		if err != nil {
			return arrival{}, err
		}
		left := time.Until(end)
		if a := j.standing(key, row); a.Outcome != "" {
			return a, nil
		}
		if holder.Held && left <= 0 {
			identity, note := lease.SplitNote(holder.Note)
			return arrival{keytext.Show(key), "held", shown.Placement(row.Placement), lease.Epoch(row.Token), identity, note}, nil
		}
		switch err := j.try(ctx, key, max(left, time.Second)); {
		case err == nil:
			row, _, err := j.look(ctx, key)
			a := arrival{Key: keytext.Show(key), Outcome: "moved", Placement: shown.Placement(row.Placement)}
			a.Epoch = lease.Epoch(row.Token)
			return a, err
		case !j.again(ctx, key, row, err) || left <= 0 && !holder.Held:
			return arrival{}, err
		}
	}
}

// learn reads the records again if another process has moved the key since.
func (j *journey) learn(ctx context.Context, key string, row lease.Record) (err error) {
	if row.Placement != j.placement || j.cluster.Has(key, lease.Epoch(row.Token)) {
		return nil
	}
	j.cluster.List, err = cluster.Compare(ctx, j.table, j.cluster.Cluster, j.placement, []string{key})
	return err
}

// try makes a move. It waits for the holder for at most a time, and for at most --timeout.
func (j *journey) try(ctx context.Context, key string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	why := "by hand of " + operator()
	if j.back {
		return j.bridge.MoveBack(ctx, key, why)
	}
	return j.bridge.MoveOut(ctx, key, why)
}

// again reports whether a failed move has changed nothing and may be tried again.
func (j *journey) again(ctx context.Context, key string, before lease.Record, err error) bool {
	row, found := j.row(ctx, key)
	changed := row.Placement != before.Placement && !errors.Is(err, lease.ErrMoved)
	if found != nil || ctx.Err() != nil || changed || j.probe(ctx) != nil {
		return false
	}
	return oneline.Is(err, context.DeadlineExceeded, adapter.ErrLate, lease.ErrMoved, lease.ErrUnknown, lease.ErrBusy,
		lease.ErrLost)
}

func (j *journey) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.etcd.Timeout)
	defer cancel()
	return j.cluster.Probe(ctx)
}

// look returns the row of a key, and who holds the key, wherever it is.
func (j *journey) look(ctx context.Context, key string) (row, holder lease.Record, err error) {
	row, err = j.row(ctx, key)
	if err != nil || row.Placement != j.placement {
		return row, row, err
	}
	found, err := j.cluster.Inspect(ctx, lease.Filter{Keys: []string{key}, Limit: 1})
	if len(found) == 1 {
		holder = found[0]
	}
	return row, holder, err
}

// row returns the zero row, in the table, for a key without one.
func (j *journey) row(ctx context.Context, key string) (lease.Record, error) {
	found, err := j.table.Inspect(ctx, lease.Filter{Keys: []string{key}, Limit: 1})
	if err != nil || len(found) == 0 {
		return lease.Record{}, err
	}
	return found[0], nil
}

// standing is the arrival of a key that there is nothing to do for. Only the process that moved a
// key opens its epoch in the cluster, or a bridge of the application: this command may have been
// given another --etcd-prefix, where that epoch must not be open.
func (j *journey) standing(key string, row lease.Record) arrival {
	a := arrival{Key: keytext.Show(key), Placement: shown.Placement(row.Placement), Epoch: lease.Epoch(row.Token)}
	inTable := row.Placement == lease.PlacementTable || row.Placement == lease.PlacementTransaction
	switch {
	case inTable && j.back:
		a.Outcome = "already"
	case inTable:
	case row.Placement != j.placement:
		a.Outcome = "elsewhere"
	case !j.cluster.Has(key, a.Epoch):
		a.Outcome = "half"
	case !j.back:
		a.Outcome = "already"
	}
	return a
}

func (p *program) printArrival(a arrival) error {
	if p.out.IsJSON() {
		return p.out.JSON(a)
	}
	place := "the " + a.Placement
	if a.Placement != shown.Placement(lease.PlacementTable) {
		place = a.Placement + ", in epoch " + strconv.FormatInt(a.Epoch, 10)
	}
	switch a.Outcome {
	case "moved":
		p.out.Line("%s is in %s", a.Key, place)
	case "already":
		p.out.Line("%s is in %s already", a.Key, place)
	case "held":
		p.out.Line("%s stays in %s: held by %s", a.Key, place,
			cmp.Or(listing.Plain(lease.Describe(a.Holder, a.Note)), "a client without a name"))
	case "half":
		p.out.Line("%s has left the table for %s, and the cluster has no record of that: the next request of "+
			"the application for it completes the move, unless --etcd-prefix is another than the application's",
			a.Key, place)
	case "elsewhere":
		p.out.Line("%s is in %s: give that as --placement, with its cluster", a.Key, place)
	}
	return nil
}
