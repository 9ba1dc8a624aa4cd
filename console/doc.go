// Package console is a page that shows locks: which keys are held, by which client, since when,
// who waits behind whom, and which callers wait for one another. Mount it in an application:
//
//	h, err := console.Handler(locks, console.Options{
//		DB: db, Dialect: postgres.New(),
//		Authorize: func(r *http.Request) (string, error) { return operator(r) },
//	})
//	mux.Handle("/locks/", http.StripPrefix("/locks", h))
//
// The command `rowlock console` serves the same page.
//
// # What it costs
//
// Pages refresh themselves. However many viewers there are, the console sends one statement a
// second for them, and none without viewers: views that differ take turns. A statement that takes
// long is repeated less often, so that the console keeps the database busy for a tenth of the time
// at most. Opening a page costs one statement, two for that of a process, or four for that of a
// key, unless the same page was read within the last second. The page of a key whose lease has
// expired also asks the server what has the row locked, by two connections that are closed after a
// minute without such a page.
//
// # What it shows to whom
//
// Nothing is shown before Options.Authorize has named the viewer. Keys and notes are bytes that any
// program may choose: they are escaped, and shown as package keytext of this module writes them.
//
// Pages load nothing from elsewhere, run no inline script, cannot be framed, and are not stored by
// browsers or proxies. At most Options.Streams pages refresh themselves at a time, and
// Options.StreamsPerViewer of one viewer.
//
// # Forced release
//
// With Options.Write a viewer can take a key from its holder, after typing the key and a reason.
// It is [rowlock.Client.ForceRelease]: the holder is refused at its next fence, and the record
// names the viewer. A form that another site sends is refused.
package console
