package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// Operators' tools look while a transaction has a SQLite file. What they open reads, and grants
// nothing by mistake.
func TestAStoreForReadingReadsBesideAWriterAndGrantsNothing(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k")
		writer := s.Begin(s.Env.DB, nil)
		s.Exec(writer, `UPDATE {rowlock} SET note = note WHERE {key} = ?`, []byte("k"))
		store, _, err := table.Open(adapter.Reading(s.Context()), s.Env.Pool(s), s.Env.Dialect,
			table.Options{Connections: 1, Timeout: 5 * time.Second})
		s.OK(err)
		defer func() { _ = store.Close() }()
		found, err := store.Inspect(s.Context(), lease.Filter{})
		if err != nil || len(found) != 1 || found[0].Token != l.Token() || !found[0].Held {
			s.Errorf("it reads %+v, %v", found, err)
		}
		s.OK(writer.Rollback())
		got, err := store.Acquire(s.Context(), []lease.AcquireRequest{
			{Key: "free", Owner: lease.NewOwner(), TTL: servertest.Patience},
		})
		if err == nil && got[0].Err != nil {
			err = got[0].Err
		}
		if err == nil || !strings.Contains(err.Error(), "has learned no era") {
			s.Errorf("it is answered with %+v, %v", got, err)
		}
	})
}
