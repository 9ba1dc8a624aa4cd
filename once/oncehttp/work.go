package oncehttp

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// work is what the handler of a request finds in its context.
type work struct {
	tx     *sql.Tx
	failed atomic.Pointer[error]
	asked  atomic.Bool // the handler has the transaction
}

type workKey struct{}

func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// Tx returns the transaction of the request that ctx belongs to, for the handler to write in. A
// handler that refuses a request before it calls Tx leaves nothing: see Config.Keep. Tx is
// nil if the request has no key. The middleware commits it: the handler must neither commit it nor
// roll it back.
func Tx(ctx context.Context) *sql.Tx {
	if w := workOf(ctx); w != nil {
		w.asked.Store(true)
		return w.tx
	}
	return nil
}

// Fail reports err, of a statement in the transaction of the request that ctx belongs to. The
// transaction is rolled back, whatever the response is. If err is a deadlock or a serialization
// failure, by which the database asks for a repetition, the handler runs again, up to four times,
// with the request as it came and an empty response. Otherwise, and after that, the response of 400
// or more that it wrote is sent and not kept, or 503 if it wrote none. So call Fail, answer as if
// there were no other try, and return:
//
//	if _, err := tx.ExecContext(…); err != nil {
//		oncehttp.Fail(r.Context(), err)
//		http.Error(w, "try again", http.StatusInternalServerError)
//		return
//	}
//
// Without it a deadlock is one more 500, which the client may repeat. The first of several errors
// counts. nil and a request without a transaction do nothing.
func Fail(ctx context.Context, err error) {
	if w := workOf(ctx); w != nil && err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
}

func (w *work) failure() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}
