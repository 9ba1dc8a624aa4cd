// Package fencesql writes the SQL with which a program in any language checks, in its own
// transaction, that a lock is still held.
//
// The statements have no parameters, so that they can be pasted and piped. Only digits of numbers
// and hexadecimal digits are put into them.
package fencesql

import (
	"embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var files embed.FS

// Statements returns the statements in their order: the first fails unless l is held, and the
// second, if there is one, extends it by ttl from now. kind is "postgres", "mysql" or "sqlite". Its
// errors wrap lease.ErrConfig.
func Statements(kind string, names sqlstore.Names, l lease.Lease, ttl time.Duration) ([]string, error) {
	text, err := files.ReadFile(kind + ".sql")
	if err != nil {
		return nil, fmt.Errorf("%w: --dialect %q: write postgres, mysql or sqlite",
			lease.ErrConfig, kind)
	}
	if err := names.Check(); err != nil {
		return nil, err
	}
	values := strings.NewReplacer("@key", hex.EncodeToString([]byte(l.Key)), "@owner", l.Owner.String(),
		"@name", "rowlock", "@token", l.Token.String(), "@ttl", strconv.FormatInt(ttl.Microseconds(), 10))
	quote := `"`
	if kind == "mysql" {
		quote = "`"
	}
	var out []string
	for _, s := range sqlstore.CutSections(string(text)) {
		out = append(out, values.Replace(strings.Join(strings.Fields(names.Fill(s.SQL, quote)), " ")))
	}
	return out, nil
}
