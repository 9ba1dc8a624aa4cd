package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

var next = regexp.MustCompile(`href="([^"]+)" rel="next"`)

var onPage = regexp.MustCompile(`<code>(page/\d+)</code></a>`)

// walk returns the keys of a list's pages.
func (b *bed) walk(query string) (pages [][]string) {
	b.Helper()
	for path := query; path != "" && len(pages) < 10; {
		page := b.wants(path)
		var keys []string
		for _, m := range onPage.FindAllStringSubmatch(page, -1) {
			keys = append(keys, m[1])
		}
		pages, path = append(pages, keys), ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = strings.TrimPrefix(html.UnescapeString(m[1]), "./")
		}
	}
	return pages
}

// Shared keys have no expiry: by expiry they are the last, in the order of keys.
func TestPagesHaveEveryKeyOnceInOrder(t *testing.T) {
	each(t, func(b *bed) {
		const n = 130
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf("page/%06d", i))
		}
		oldest := slices.Clone(keys)
		slices.Reverse(oldest)
		for _, shared := range []bool{false, true} {
			b.Exec(b, "DELETE FROM {rowlock} WHERE {key} > ?", []byte("page/"))
			fill(b, b.Env, n, shared)
			for sort, want := range map[string][]string{"key": keys, "age": oldest, "expiry": keys} {
				pages := b.walk("?prefix=page/&sort=" + sort)
				if got := slices.Concat(pages...); len(pages) != 3 || !slices.Equal(got, want) {
					b.Errorf("shared: %v: sorted by %s: %d pages have %q", shared, sort, len(pages), got)
				}
			}
		}
	})
}

func TestBadAddressesAreExplained(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	for _, path := range []string{
		`key?k=\q`, "key", "waits?prefix=" + strings.Repeat("a", 300), "records?prefix=" + strings.Repeat("a", 300),
		"?sort=size", "?sort=age&at=x", "?sort=age&at=-1", `?prefix=\x`,
		"?prefix=" + strings.Repeat("a", 300), "?after=" + strings.Repeat("a", 5000),
	} {
		code, page := b.get(path)
		if code != http.StatusBadRequest || !strings.Contains(page, "rowlock:") {
			t.Errorf("%.40s is answered with %d", path, code)
		}
	}
	for _, path := range []string{"events?page=nothing", `events?page=key&k=\q`} {
		if code, _ := b.get(path); code != http.StatusBadRequest {
			t.Errorf("%s is answered with %d", path, code)
		}
	}
	if code, _ := b.get("nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown page is answered with %d", code)
	}
}
