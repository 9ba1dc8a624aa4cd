package rowlock

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/race/bubbles"
)

func TestMain(m *testing.M) { bubbles.Main(m) }

// Times returns the TTL, the margin and the renewal interval of one call with opts, on a Client
// configured with cfg.
func Times(cfg Config, opts ...Option) (ttl, margin, every time.Duration, err error) {
	full, err := cfg.withDefaults()
	if err != nil {
		return 0, 0, 0, err
	}
	call := (&Client{core: &core{keeper: keeper{cfg: full}}}).newCall(false)
	err = call.apply(opts)
	return call.Want.TTL, call.margin, call.every, err
}

// StopWatchdog ends what renews the locks of c and ends them in time.
func StopWatchdog(c *Client) { c.dog.Stop() }
