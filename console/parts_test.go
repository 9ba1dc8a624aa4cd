package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestAKeyHasATimelineIfThereIsOne(t *testing.T) {
	broken, none := false, false
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.Timeline = func(_ context.Context, key string) ([]console.Event, error) {
			if none {
				return nil, nil
			}
			if broken {
				return nil, errors.New("no table of events\n<b>")
			}
			events := make([]console.Event, 300)
			for i := range events {
				events[i] = console.Event{
					At: time.Unix(int64(1e9-i), 0), Kind: "granted", Token: 77, Note: key, Detail: "<script>\xff",
				}
			}
			return events, nil
		}
	})
	b.lock("k")
	page := b.wants("key?k=k", "What has happened to this key", "2001-09-09 01:46:40 UTC", "granted", "77",
		"There are more events: this page shows 200", "&lt;script&gt;")
	if n := strings.Count(page, ">granted<"); n != 200 || len(page) > 200<<10 {
		t.Errorf("the page has %d events and %d bytes", n, len(page))
	}
	none = true
	b.wants("key?k=none", "clients keep them with Config.Trace")
	broken, none = true, false
	b.stream("page=key&k=k").until("view", "no table of events &lt;b&gt;") // and the rest of the page
}

func TestFindingsAreShownIfTheyAreLookedFor(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	if code, _ := b.get("findings"); code != http.StatusNotFound {
		t.Errorf("without a check the page is answered with %d", code)
	}
	checks := 0
	b.serve(b.client, func(o *console.Options) {
		o.Findings = func(context.Context) ([]console.Finding, error) {
			if checks++; checks == 1 {
				return nil, errors.New("the check was cut off")
			}
			return []console.Finding{{
				Severity: "critical", Summary: "fsync is off", Evidence: []string{"fsync = off <b>"},
				Cure: []string{"ALTER SYSTEM SET fsync = on"},
			}, {Severity: `"><b>`, Summary: "odd"}, {Severity: "warning", Summary: "too few"}}, nil
		}
	})
	code, page := b.get("findings")
	if code != http.StatusServiceUnavailable || !strings.Contains(page, "the check was cut off") {
		t.Errorf("a check that fails is answered with %d: %s", code, page)
	}
	b.becomes("findings", "fsync is off")
	for range 2 {
		page := b.wants("findings", `mark critical">critical`, "fsync is off", "fsync = off &lt;b&gt;",
			"ALTER SYSTEM SET fsync = on", `aria-current="page">Findings`, "3 findings, 2 to act on")
		_, folded, _ := strings.Cut(page, "<details")
		if !strings.Contains(folded, "odd") || strings.Contains(folded, "too few") {
			t.Errorf("folded are %s", folded)
		}
		if strings.Contains(page, "<b>") || strings.Contains(page, `data-events="e`) {
			t.Errorf("the page has %s", page)
		}
	}
	if checks != 2 {
		t.Errorf("4 pages make %d checks, want 2", checks)
	}
	if code, _ := b.get("events?page=findings"); code != http.StatusBadRequest {
		t.Errorf("findings have a stream: %d", code)
	}
}
