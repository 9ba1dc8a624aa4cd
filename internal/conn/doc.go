// Package conn brings statements to the database over a few connections that rowlock keeps.
//
// A [Session] is one such pinned connection with its settings made and its statements prepared. It
// runs statements, binds them to an end, and scans what they answer. A [Set] has several sessions,
// each with a goroutine that runs what is pending on it, one operation or a batch at a time.
//
// Because rowlock keeps its connections, a renewal passes while workers that wait for locks exhaust
// the application's pool. Because every statement runs to its end on a connection that database/sql
// does not retry on, its outcome can be known.
//
// A caller whose context ends stops waiting; its statement does not stop, and its outcome stays
// unknown. The caller cleans up by owner what it may have granted, and Settle says from when on
// that is final.
package conn
