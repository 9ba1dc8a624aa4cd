package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
)

// MySQL 9.7 acknowledges a commit that has no room in its binary log, and rolls it back, if the room
// is too little by less than the end of a transaction takes: 28 bytes. All who asked for the keys of
// such a batch, one after the other, were told the same token.
func TestAServerThatLosesACommitForWantOfRoomIsRefused(t *testing.T) {
	t.Parallel()
	eachPrivate(t, nil, func(t *testing.T, p *private) {
		if p.Name == "postgres" {
			return
		}
		opens := func(room string) error {
			if err := p.set(t.Context(), []settings.Flip{{Name: "max_binlog_cache_size", Value: room}}); err != nil {
				t.Fatal(err)
			}
			p.DB.SetMaxIdleConns(-1)
			c, err := rowlock.OpenContext(t.Context(), p.DB, p.Dialect, nil)
			if err != nil {
				return err
			}
			return c.Close()
		}
		err := opens("4190208")
		if !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), "max_binlog_cache_size is 4190208") {
			t.Errorf("with room for less than a batch: %v", err)
		}
		if err := opens("4194304"); err != nil {
			t.Errorf("with room for any batch: %v", err)
		}
	})
}
