package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// begin is how a transaction of InTx begins. The pinned connection's settings say the rest.
	begin = `BEGIN ISOLATION LEVEL READ COMMITTED, NOT DEFERRABLE`
	// beginShared is begin for a session whose settings are anything; see pins for READ WRITE.
	beginShared = `BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE`
)

// pinsFirst comes before pins, because another client's limit may be too short for them.
const pinsFirst = `SET LOCAL statement_timeout = 5000`

// pins makes the settings of a transaction in a session that other clients share, whatever they
// have set there, the role first, on whose rights the others depend. They end with the transaction,
// so that the session stays as it was. A default that forbids writing stays in force: an operator
// who makes a database read-only moves it elsewhere.
var pins = `SELECT /* rowlock pins */ set_config('session_authorization', NULL, true),
		set_config('role', NULL, true), set_config('search_path', NULL, true), ` + meaning(true) + `,
		set_config('synchronous_commit', ` + durable(true) + `, true),
		set_config('lock_timeout', '1000', true),
		set_config('idle_in_transaction_session_timeout', '4000', true),
		` + refuseReadOnly

// refuseReadOnly fails if the default of the role or of the database forbids writing.
const refuseReadOnly = `(CASE set_config('default_transaction_read_only', NULL, true)
			WHEN 'on' THEN '` + readOnly + `' ELSE '0' END)::int`

// readOnly is what refuseReadOnly cannot read as a number, and so says.
const readOnly = "rowlock: default_transaction_read_only is on"

var errNoCommit = errors.New("the transaction was not committed")

// askShared sends the request to a session that other clients share: in a transaction of its own
// that begins with the pins, in one round trip. Within a transaction of InTx, which has begun so,
// it sends the request alone.
func (w *wire) askShared(ctx context.Context, commits bool) error {
	var batch pgconn.Batch
	first := 0
	if commits {
		for _, before := range []string{beginShared, pinsFirst, pins} {
			batch.ExecParams(before, nil, nil, nil, nil)
			first++
		}
	}
	for i := range w.request.all {
		x := &w.request.all[i]
		d := x.plan.description
		batch.ExecParams(d.SQL, x.params, d.ParamOIDs, x.formats, x.plan.results)
	}
	if commits {
		batch.ExecParams(commit(w.request.all), nil, nil, nil, nil)
	}
	last, err := w.keepFrom(first, w.on.ExecBatch(ctx, &batch))
	if err == nil && commits && last.String() != "COMMIT" {
		w.broken.Store(true)
		err = errNoCommit
	}
	if err != nil && commits {
		w.rollBack(ctx)
	}
	return err
}

// pinned runs f, which changes nothing, in a transaction with the pins if others share the session.
func (w *wire) pinned(ctx context.Context, f func() error) error {
	if w.shared == nil || w.shared.InTransaction() {
		return f()
	}
	_, err := w.on.Exec(ctx, beginShared+`; `+pinsFirst+`; `+pins).ReadAll()
	if err == nil {
		err = f()
	}
	w.rollBack(ctx)
	if err == nil && w.broken.Load() {
		err = errBroken
	}
	return err
}

// commit has the label of the last statement, because pg_stat_activity shows what a session has run
// last.
func commit(all []execution) string { return `COMMIT` + all[len(all)-1].plan.label }

// labelOf returns the comment with a statement's name, or "".
func labelOf(query string) string {
	at := strings.Index(query, " /* rowlock ")
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(query[at:], "*/")
	return name + "*/"
}

// keepFrom reads all answers, and keeps those of the request, which begin with the nth.
func (w *wire) keepFrom(n int, results *pgconn.MultiResultReader) (last pgconn.CommandTag, err error) {
	for i := -n; results.NextResult(); i++ {
		r := results.ResultReader()
		if i >= 0 && i < len(w.request.all) {
			_ = w.reply.keep(w.request.all[i].plan, r) // its error is that of Close
			continue
		}
		last, _ = r.Close()
	}
	return last, results.Close()
}

// rollBack ends the transaction that an error has stopped. The server has not seen the COMMIT
// behind it, because it skips all that was sent up to the end of the round trip.
func (w *wire) rollBack(ctx context.Context) {
	if w.on.IsClosed() || w.on.TxStatus() == idle {
		return
	}
	if _, err := w.on.Exec(ctx, `ROLLBACK`).ReadAll(); err != nil || w.on.TxStatus() != idle {
		w.broken.Store(true)
	}
}
