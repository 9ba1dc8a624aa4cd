// Package oncehttp lets an HTTP handler be repeated safely: the Idempotency-Key of draft-ietf-httpapi-idempotency-key-header, on package
// once.
//
//	h, err := oncehttp.New(o, nil)
//	http.Handle("POST /orders", h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
//		tx := oncehttp.Tx(r.Context())
//		… write the order through tx, and the response to w …
//	})))
//
// The response is recorded, stored in the transaction that has the order in it, and sent once that is committed. A repeat gets the same
// status, headers and body, with Idempotent-Replayed: true, and the handler is not run.
//
//   - 400: the key is missing or malformed, or the body did not arrive whole. 413: the body is larger than Config.MaxBody.
//   - 409 with Retry-After: the first is still in flight. 422: the key was used for another request: another method, path or query,
//     content type or encoding, or body. The body is compared byte for byte: who sends a form repeats its boundary, too.
//   - 500: the response is too large to be kept, so that nothing was done.
//   - 503 with Retry-After: the database could not do it for the moment, or it is not known whether it did. Repeat with the same key.
//
// A response of 500 or more, and a panic, roll everything back and are not kept: the repeat runs the handler again. Stripe keeps and
// replays them, because its handlers may have called others by then; here all that was done is undone, and to try again is safe. What
// is less than 500 is committed and kept, most 4xx as well, so that a repeat is answered as the first was: Config.Keep can say otherwise. A
// handler that answers 4xx in the middle of its work has what it wrote before committed, unless it takes that back or Keep says no; on
// Postgres, where a failed statement ends the transaction, nothing is committed or kept, and the answer is sent all the same.
//
// A handler that meets a deadlock and answers 500 leaves it to the client to try again. If it tells [Fail] of the error it is run again
// at once, as the function of once.Do is. In either case, and where a COMMIT meets a conflict, a handler can run more than once
// for one request: what it does outside of the transaction it does as often.
//
// Set-Cookie, Date and the headers of a single connection are sent with the first answer and never kept: a repeat must not hand out
// a session. Errors of this package are application/problem+json (RFC 9457). http.Flusher and http.Hijacker are not offered: nothing
// may leave before the commit.
package oncehttp
