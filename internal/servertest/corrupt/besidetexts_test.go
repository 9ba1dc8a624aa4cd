package corrupt

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// What another hand has written of a forced release is listed no longer than rowlock writes it.
func TestAForcedReleaseIsReadNoLongerThanRowlockWritesIt(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		store := storeOn(t, e)
		r := lease.ForceRequest{Key: "k", ID: lease.NewOwner(), By: "ada", Reason: "test"}
		if got, err := store.Acquire(t.Context(),
			[]lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}}); err != nil || !got[0].Granted {
			t.Fatal(got, err)
		}
		if _, err := store.ForceRelease(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for _, column := range []string{"actor", "reason", "note"} {
			switch e.Driver {
			case "mysql":
				e.Exec(t, `ALTER TABLE {rowlock_forced} MODIFY `+column+` LONGBLOB`)
			case "pgx":
				e.Exec(t, `ALTER TABLE {rowlock_forced} ALTER `+column+` TYPE text`)
			}
			e.Exec(t, `UPDATE {rowlock_forced} SET `+column+` = '`+strings.Repeat("x", 3<<20)+`'`)
		}
		all, err := store.ForceReleases(t.Context(), lease.ForcedFilter{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%d records, %v", len(all), err)
		}
		if f := all[0]; len(f.By) > lease.MaxStoredNote || len(f.Reason) > lease.MaxReason ||
			len(f.Note) > lease.MaxStoredNote {
			t.Errorf("an operator of %d bytes, a reason of %d, a note of %d", len(f.By), len(f.Reason), len(f.Note))
		}
	})
}

var (
	cut = regexp.MustCompile(`(?i)(left|substr)\((\w\.)?(note|actor|reason|detail), (1, )?\d+\)( AS note)?`)
	// outer reads what an inner SELECT has cut.
	outer = regexp.MustCompile(`SELECT kind, note, age, alive, caller, held FROM \(`)
	whole = regexp.MustCompile(`(?s)SELECT[^;]*?\b(note|actor|reason|detail)\b[^;]*?FROM`)
	// remark is a comment of a file.
	remark = regexp.MustCompile(`(?m)^--.*$`)
)

// The listings of the console and the command line read many rows at once. Each database cuts what
// it sends of them.
func TestEveryListingHasItsTextsCutByTheDatabase(t *testing.T) {
	files, err := filepath.Glob("../../../internal/shown/*.sql")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(raw), "-- name: ")[1:] {
			sql := outer.ReplaceAllString(cut.ReplaceAllString(remark.ReplaceAllString(part, ""), "''"), "(")
			if found := whole.FindString(sql); found != "" {
				t.Errorf("%s: %.20q reads a text whole: %s", file, part, found)
			}
		}
	}
}
