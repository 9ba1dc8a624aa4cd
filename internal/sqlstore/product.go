package sqlstore

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/rowlockdb/rowlock/lease"
)

// ProductError is the error of a probe's first statement, of a dialect that speaks to names. Only
// a server's own refusal says that another product answers. An error without a code comes from the
// connection, such as a reset in a restart or a failover: the same database may answer the next
// try.
func ProductError(speaker, names string, err error) error {
	if !hasCode(err) {
		return err
	}
	return fmt.Errorf("%w: %s speaks to %s; this database answers %w", lease.ErrWrongDialect, speaker,
		names, err)
}

// hasCode reports whether err is a server's, of whatever product: drivers keep its code in a method
// or a field.
func hasCode(err error) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case interface{ SQLState() string }: // pgx, lib/pq
			return true
		case interface{ Code() int }: // modernc.org/sqlite
			return true
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				if hasCode(one) {
					return true
				}
			}
			return false
		}
		v := reflect.Indirect(reflect.ValueOf(e))
		if v.Kind() != reflect.Struct {
			continue
		}
		for _, name := range [...]string{"Number", "Code"} { // go-sql-driver/mysql; mattn/go-sqlite3
			if f := v.FieldByName(name); f.IsValid() && (f.CanInt() || f.CanUint()) {
				return true
			}
		}
	}
	return false
}

// demanded finds the number in "ANY 2 (a, b)", "FIRST 2 (a, b)" and "2 (a, b)".
var demanded = regexp.MustCompile(`(?i)^\s*(?:(?:any|first)\s+)?(\d+)\s*\(`)

// Standbys is how many standbys a commit waits for by PostgreSQL's synchronous_standby_names.
func Standbys(names string) int {
	n := 1
	if m := demanded.FindStringSubmatch(names); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}
