package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlockdb/rowlock/internal/ports"
)

// program is the path of one of Prometheus' programs.
func program(t *testing.T, name string) string {
	t.Helper()
	if folder := os.Getenv("ROWLOCK_TEST_PROMETHEUS"); folder != "" {
		return filepath.Join(folder, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		required := strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ",")
		if slices.Contains(required, "prometheus") {
			t.Fatal("ROWLOCK_TEST_PROMETHEUS is not set, and ROWLOCK_TEST_REQUIRE wants it")
		}
		t.Skipf("SKIPPED, %s NOT RUN: scripts/prometheus gets it for ROWLOCK_TEST_PROMETHEUS", name)
	}
	return path
}

// A server of Prometheus takes the pages of both, with labels that are made of arbitrary bytes, and
// with the alerts loaded.
func TestPrometheusTakesBothPages(t *testing.T) {
	server := program(t, "prometheus")
	targets := make(map[string]string)
	for name, page := range pages {
		locks, registry := page(t, func(key string) string { return key })
		for _, key := range hostile {
			useOnce(t, locks, key)
		}
		targets[name] = serve(t, registry)
	}
	p := startPrometheus(t, server, targets)
	for name := range targets {
		for query, want := range map[string]string{
			`up{job="%s"}`:                                            "1",
			`rowlock_lock_acquired_total{job="%s"}`:                   fmt.Sprint(len(hostile)),
			`rowlock_lock_lost_total{job="%s", error_type="idle"}`:    "0",
			`sum(rowlock_lock_hold_duration_seconds_count{job="%s"})`: fmt.Sprint(len(hostile)),
			`count(rowlock_lock_wait_duration_seconds_bucket{job="%s",le="+Inf",rowlock_key_class!=""})`: fmt.Sprint(len(hostile)),
		} {
			if got := p.waitFor(fmt.Sprintf(query, name), want); got != want {
				t.Fatalf("%s: %s is %q, want %q\n%s", name, query, got, want, p.get("/api/v1/targets", nil))
			}
		}
	}
	if loaded := p.get("/api/v1/rules", nil); !strings.Contains(loaded, "RowlockLocksLost") {
		t.Errorf("the alerts are not loaded: %s", loaded)
	}
}

// hostile are keys that a classifier returns as they are.
var hostile = []string{
	"plain", "a\xff\xfeb", "\x00", "line\nbreak", `quote"and\slash`, "# HELP x", "ключ", "\xed\xa0\x80",
	"{}=,", "\u2028", strings.Repeat("long", 60),
}

func serve(t *testing.T, registry *prometheus.Registry) (address string) {
	t.Helper()
	page := httptest.NewServer(
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, DisableCompression: true}))
	t.Cleanup(page.Close)
	return strings.TrimPrefix(page.URL, "http://")
}

// running is a server of Prometheus.
type running struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, server string, targets map[string]string) *running {
	t.Helper()
	folder, address := t.TempDir(), freeAddress(t)
	alerts, err := filepath.Abs(rules)
	must(t, err)
	config := fmt.Sprintf("global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}\n"+
		"rule_files: [%q]\nscrape_configs:\n", alerts)
	for job, target := range targets {
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, target)
	}
	must(t, os.WriteFile(filepath.Join(folder, "config.yml"), []byte(config), 0o600))
	said, err := os.Create(filepath.Join(folder, "log"))
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, server, "--config.file=config.yml", "--storage.tsdb.path=data",
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, said, said
	must(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		must(t, said.Close())
		if t.Failed() {
			t.Log(read(t, said.Name()))
		}
	})
	return &running{t, "http://" + address}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := ports.Free(1)
	must(t, err)
	return address[0]
}

// waitFor asks until the answer is as wanted, for a minute at most, and returns the last one.
func (p *running) waitFor(query, want string) (got string) {
	p.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-again.C {
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		text := p.get("/api/v1/query", url.Values{"query": {query}})
		if json.Unmarshal([]byte(text), &answer) != nil || len(answer.Data.Result) != 1 {
			continue
		}
		if got = fmt.Sprint(answer.Data.Result[0].Value[1]); got == want {
			return got
		}
	}
	return got
}

// get is an answer, or why there is none.
func (p *running) get(path string, values url.Values) string {
	p.t.Helper()
	ask, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path+"?"+values.Encode(), http.NoBody)
	must(p.t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(ask)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return string(text)
}
