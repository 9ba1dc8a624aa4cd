// Package once does what must be done once, however often it is asked for: an order, a payment, a message that is delivered again.
//
//	res, err := o.Do(ctx, once.Request{Key: "req-7", Fingerprint: once.Fingerprint(body)}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
//		… write the order through tx …
//		return json, nil
//	})
//
// The key is a row that is written in the very transaction that writes the order, together with the result. Therefore the order is
// there exactly if the key is, whatever fails and wherever: no lease has to be long enough, no half-done state has to be
// found and mended, and a repeat gets the result of the one that was committed.
//
// What that does not cover is whatever the function does outside of tx. An e-mail or another service's API is called again with
// every run, of which there can be more than one: write what is to be sent into a table through tx, and send it from there.
//
// Results are kept for Config.Keep by the database's clock and then forgotten: a repeat that comes later is done again.
package once
