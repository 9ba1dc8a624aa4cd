module github.com/rowlockdb/rowlock/wlock

go 1.26.0

replace github.com/rowlockdb/rowlock => ..
