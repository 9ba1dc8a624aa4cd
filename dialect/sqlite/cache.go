package sqlite

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
)

// location is the file at path as SQLite's URIs name it.
func location(path string) string {
	if folder, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		path = folder + "/" + path // or the pool's later connections have another file after an os.Chdir
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path // file:/C:/app.db
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath()
}

// ownsCache reports whether the connection has a page cache of its own, and not one that it shares
// with other connections of the process (cache=shared). How durable a commit is belongs to the
// cache: a setting of one connection there is that of all.
//
// No pragma tells. SQLite refuses to attach a file in the cache that the connection has it open in.
// Any other error is taken for that too. If this returns an error, the file may still be attached.
func ownsCache(ctx context.Context, conn *sql.Conn) (bool, error) {
	path, err := file(ctx, conn)
	if err != nil {
		return false, err
	}
	_, err = conn.ExecContext(ctx, `ATTACH ? AS rowlock_cache`, location(path)+"?mode=rw&cache=shared")
	if err != nil {
		return false, ctx.Err()
	}
	_, err = conn.ExecContext(ctx, `DETACH rowlock_cache`)
	return true, err
}
