// Package oncehttp makes an HTTP handler safe to repeat: the Idempotency-Key of
// draft-ietf-httpapi-idempotency-key-header, on package once.
//
//	h, err := oncehttp.New(o, &oncehttp.Config{Tenant: account})
//	order := func(w http.ResponseWriter, r *http.Request) {
//		tx := oncehttp.Tx(r.Context())
//		… write the order through tx, and the response to w …
//	}
//	http.Handle("POST /orders", h.Wrap(http.HandlerFunc(order)))
//
// The response is recorded, stored in the transaction that has the order, and sent after the
// commit. A repeat gets the same status, headers and body, with Idempotent-Replayed: true, and the
// handler does not run.
//
// A key belongs to an account, which Config.Tenant returns. Another account that sends the same key
// and body has a request of its own, and never gets the stored response. Put Wrap inside of what
// authenticates. An API without accounts says so: see [SharedKeys].
//
//   - 400: the key is missing or malformed, or the body did not arrive whole.
//   - 403: Config.Tenant returned no account.
//   - 409 with Retry-After: the first is still in flight.
//   - 413: the body is larger than Config.MaxBody.
//   - 406: the response is kept in a content coding that the client does not accept, and is not
//     gzip, which is unpacked for it.
//   - 422: the key was used for another request: another method, host, path or query, content type
//     or encoding, or body. The parts of a multipart form are compared, without their boundary,
//     which clients draw anew. Other bodies are compared byte for byte.
//   - 429 with Retry-After: the account has once.Config.MostPerTenant answers stored.
//   - 500: the response is too large to be kept, be it one that would be kept or not, so that
//     nothing was done; or a handler around Wrap has parsed a multipart form.
//   - 503 with Retry-After: the database could not do it at the moment, or the outcome is unknown.
//     Repeat with the same key.
//
// A response of 500 or more, and a panic, roll everything back and are not kept: the repeat runs
// the handler again. Stripe keeps and replays them, because its handlers may have called other
// services by then. Here everything is undone, so that a retry is safe.
//
// A response below 500 is committed and kept, so that a repeat is answered as the first was;
// Config.Keep can say otherwise. Most 4xx are too, if the handler has called Tx: a refusal before
// that has changed nothing, is not kept, and costs no row. A handler that has called Tx is taken to
// have written, also if it has only read: no database says for every user whether a transaction has
// changed something. PostgreSQL's id of it is there before the handler runs, as it has written the
// key, and its counters can be off and know no sequences; MySQL and MariaDB tell who has the right
// PROCESS alone; SQLite counts no changes of tables themselves. So a handler that reads what
// decides about a refusal reads it through the pool, before it calls Tx; or Config.Keep refuses the
// statuses with which it answers only before it has written. If a handler answers 4xx in the middle
// of its work, what it wrote before is committed, unless it undoes that or Keep says no. On
// PostgreSQL a failed statement ends the transaction: then nothing is committed or kept, and the
// answer is sent all the same.
//
// If a handler meets a deadlock and answers 500, the client must try again. If it reports the error
// to [Fail], it runs again at once, as the function of once.Do does. In both cases, and if a COMMIT
// meets a conflict, a handler can run more than once for one request, and so do its effects outside
// of the transaction.
//
// Set-Cookie, Date and the headers of a single connection are sent with the first answer and never
// kept, because a repeat must not hand out a session. Errors of this package are
// application/problem+json (RFC 9457). It does not offer http.Flusher and http.Hijacker, and sends
// neither trailers nor a 1xx status, because nothing may leave before the commit.
package oncehttp
