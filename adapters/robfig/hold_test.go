package cronrowlock

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// cron knows the zones, and a tick counts as run until shortly before the next, however long the day.
func TestATickCountsAsRunUntilShortlyBeforeTheNext(t *testing.T) {
	daily, err := cron.ParseStandard("CRON_TZ=America/New_York 0 3 * * *")
	if err != nil {
		t.Fatal(err)
	}
	hourly, err := cron.ParseStandard("0 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	never, err := cron.ParseStandard("0 0 30 2 *")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schedule cron.Schedule
		at       string
		want     time.Duration
	}{
		{daily, "2026-01-10T03:00:00-05:00", 24 * time.Hour * 3 / 4},
		{daily, "2026-03-07T03:00:00-05:00", 23 * time.Hour * 3 / 4},
		{daily, "2026-10-31T03:00:00-04:00", 25 * time.Hour * 3 / 4},
		{hourly, "2026-01-10T03:00:00Z", 45 * time.Minute},
		{never, "2026-01-10T03:00:00Z", 24 * time.Hour},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{cfg: Config{Schedule: c.schedule}}
		if got := j.minHold(at); got != c.want {
			t.Errorf("at %s: %s, want %s", c.at, got, c.want)
		}
	}
}
