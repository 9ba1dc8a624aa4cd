package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
)

// A till that finds SQLite's file locked for all of its busy_timeout begins again, and sells.
func TestABusyFileEndsNoSale(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stock.db")
	s, err := openShop(t.Context(), settings{db: file, items: 1, buyers: 1, tills: 4, stripes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close(context.Background()) }()
	other, err := s.db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	tries := 0
	err = s.patiently(t.Context(), func() error {
		if tries++; tries == 2 { // the writer that had the file is done
			if _, err := other.ExecContext(t.Context(), `ROLLBACK`); err != nil {
				t.Error(err)
			}
		}
		return s.justBegin(t.Context(), tries == 1)
	})
	if err != nil || tries < 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// justBegin begins a transaction, and at the first try without waiting for the file.
func (s *shop) justBegin(ctx context.Context, impatient bool) error {
	c, err := s.db.Connx(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if impatient {
		if _, err := c.ExecContext(ctx, `PRAGMA busy_timeout = 0`); err != nil {
			return err
		}
	}
	var tx *sqlx.Tx
	if tx, err = c.BeginTxx(ctx, nil); err != nil {
		return err
	}
	return tx.Rollback()
}
