// Package lane brings statements to the database over a few connections of rowlock's own.
//
// A lane is one pinned connection with its settings made and its statements prepared, and one goroutine that runs what is
// pending on it. Keeping connections to ourselves is what lets a renewal pass while the application's pool is exhausted by
// the very workers that wait for locks; running every statement to its end on a connection that database/sql does not
// retry on is what makes an outcome knowable.
//
// A caller whose context ends stops waiting; its statement does not stop. Nobody learns its outcome: what it may have granted,
// the caller cleans up by owner, and Settle says from when on that is final.
package lane
