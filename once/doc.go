// Package once makes an effect happen once, however often it is requested: an order, a payment, a
// message that is delivered again.
//
//	req := once.Request{Key: "req-7", Fingerprint: once.Fingerprint(body)}
//	res, err := o.Do(ctx, req, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
//		… write the order through tx …
//		return json, nil
//	})
//
// The key is a row that is written in the transaction that writes the order, together with the
// result. So the order exists exactly if the key does, whatever fails. No lease has to be long
// enough, there is no half-done state to mend, and a repeat gets the result of the run that was
// committed.
//
// That does not cover what the function does outside of tx. Each run calls an e-mail server or
// another service again, and there can be more than one run. Write what is to be sent into a table
// through tx, and send it from there.
//
// Results are kept for Config.Keep by the database's clock. A repeat that comes later runs again.
package once
