package latch_test

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
)

// flaw is a statement in which a part is another.
type flaw struct{ section, part, instead string }

var flaws = map[string]flaw{
	"a party of an old generation counts for the new one": {"latch-count", " AND l.id = ?4", " AND ?4 IS NOT NULL"},
	"each call counts":              {"latch-count", "0, ?1,", "0, randomblob(15) || substr(?1, 1, 1),"},
	"a reset keeps the parties":     {"latch-reset", "SET id = ?1,", "SET id = coalesce(id, ?1),"},
	"a late reset resets again":     {"latch-reset", " AND id = ?5", " AND ?5 IS NOT NULL"},
	"a latch opens one party early": {"latch-look", "SELECT COUNT(*) FROM", "SELECT COUNT(*) + (COUNT(*) = 2) FROM"},
	"a count is forgotten":          {"latch-count", "AND l.expires_at >", "AND random() % 3 <> 0 OR l.expires_at < 0 AND l.expires_at >"},
}

type flawed struct {
	sqlstore.Database
	flaw
}

func (f flawed) Text(section string) string {
	text := f.Database.Text(section)
	if section == f.section {
		text = strings.Replace(text, f.part, f.instead, 1)
	}
	return text
}

// The histories show each flaw, or they show nothing.
func TestHistoriesShowFlaws(t *testing.T) {
	for name, f := range flaws {
		t.Run(name, func(t *testing.T) {
			r := &rig{testdb.Kinds[0].Open(t)}
			if text := r.Dialect.Text(f.section); !strings.Contains(text, f.part) {
				t.Fatalf("%s has no %q", text, f.part)
			}
			r.Dialect = r.Dialect.Wrapped(func(d sqlstore.Database, features sqlstore.Features) (
				sqlstore.Database, sqlstore.Features,
			) {
				return flawed{d, f}, features
			})
			for seed := range uint64(20) {
				s := []*latch.Latches{r.process(t), r.process(t), r.process(t)}
				h := &history{}
				result := h.run(t, s, 30, seed)
				for _, p := range s {
					ok(t, p.Close())
				}
				if result == porcupine.Illegal || len(h.stray) > 0 {
					return
				}
				r.Exec(t, `DELETE FROM {rowlock_latch}`)
				r.Exec(t, `DELETE FROM {rowlock_party}`)
			}
			t.Error("no history shows it")
		})
	}
}
