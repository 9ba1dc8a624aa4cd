package scrape

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"
)

// every is the time from one scrape to the next, as the rules see it.
const every = 15 * time.Second

// target is a page that is scraped, or was.
type target struct {
	instance, address string
	gone              bool
}

// recording has real pages for the rules, each a scrape after the last. Its time is that of the
// scrapes and not of a clock: a rule with a window of ten minutes sees forty pages that were taken
// in a second, so that no load makes a test slow or late, and the rules are those of the file.
type recording struct {
	testing.TB
	name    string
	targets []*target
	scrapes int
	series  map[string][]string
	checks  []check
}

// check is what promtool compares.
type check struct {
	Expr     string   `yaml:"expr"`
	EvalTime string   `yaml:"eval_time"`
	Samples  []sample `yaml:"exp_samples"`
}

type sample struct {
	Labels string `yaml:"labels"`
	Value  int    `yaml:"value"`
}

func newRecording(tb testing.TB, name string) *recording {
	return &recording{TB: tb, name: name, series: make(map[string][]string)}
}

func (r *recording) add(instance, address string) *target {
	t := &target{instance: instance, address: address}
	r.targets = append(r.targets, t)
	return t
}

// scrape takes the next pages.
func (r *recording) scrape() {
	r.Helper()
	for _, t := range r.targets {
		if t.gone {
			continue
		}
		for name, f := range r.page(t) {
			if strings.HasPrefix(name, "rowlock_") {
				r.keep(t, f)
			}
		}
	}
	r.scrapes++
	for name, values := range r.series { // Prometheus marks the end of a series that is on no page
		if len(values) < r.scrapes {
			r.series[name] = append(values, "stale")
		}
	}
}

func (r *recording) page(t *target) families {
	r.Helper()
	ask, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+t.address, http.NoBody)
	must(r, err)
	answer, err := http.DefaultClient.Do(ask)
	must(r, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	must(r, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(string(page)))
	must(r, err)
	return found
}

func (r *recording) keep(t *target, f *dto.MetricFamily) {
	for _, m := range f.Metric {
		labels := map[string]string{"job": "app", "instance": t.instance}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if h := m.GetHistogram(); h != nil {
			for _, b := range h.Bucket {
				labels["le"] = strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
				r.value(f.GetName()+"_bucket", labels, float64(b.GetCumulativeCount()))
			}
			labels["le"] = "+Inf"
			r.value(f.GetName()+"_bucket", labels, float64(h.GetSampleCount()))
			continue
		}
		r.value(f.GetName(), labels, m.GetCounter().GetValue()+m.GetGauge().GetValue())
	}
}

func (r *recording) value(name string, labels map[string]string, v float64) {
	var pairs []string
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label, labels[label]))
	}
	name += "{" + strings.Join(pairs, ",") + "}"
	values := r.series[name]
	for len(values) < r.scrapes {
		values = append(values, "_")
	}
	r.series[name] = append(values[:r.scrapes], strconv.FormatFloat(v, 'f', -1, 64))
}

// sum adds up a metric's values on the pages as they are now, which are not kept.
func (r *recording) sum(metric string) (sum float64) {
	r.Helper()
	for _, t := range r.targets {
		if !t.gone {
			sum += r.page(t).sum(metric, named, "main")
		}
	}
	return sum
}

// until waits until the pages have a metric of at least this, and takes them.
func (r *recording) until(metric string, least float64) {
	r.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); r.sum(metric) < least; <-again.C {
		if time.Now().After(end) {
			r.Fatalf("%s is %g after a minute, want %g", metric, r.sum(metric), least)
		}
	}
	r.scrape()
}

// goOn takes pages for so long, as the rules see it.
func (r *recording) goOn(d time.Duration) {
	r.Helper()
	for range d / every {
		r.scrape()
	}
}

const pages10m = int(10 * time.Minute / every)

// lately is the mean of a metric of the only target, by the pages of the last ten minutes.
func (r *recording) lately(metric string) (mean float64) {
	r.Helper()
	for name, values := range r.series {
		if strings.HasPrefix(name, metric+"{") {
			for _, v := range values[max(0, len(values)-pages10m-1):] {
				n, err := strconv.ParseFloat(v, 64)
				must(r, err)
				mean += n / float64(pages10m+1)
			}
		}
	}
	return mean
}

// wants has promtool check which alerts fire at the last scrape, and that no other does.
func (r *recording) wants(alerts ...string) {
	c := check{Expr: `group by (alertname) (ALERTS{alertstate="firing"})`, EvalTime: r.now()}
	for _, a := range alerts {
		c.Samples = append(c.Samples, sample{fmt.Sprintf("{alertname=%q}", a), 1})
	}
	r.checks = append(r.checks, c)
}

func (r *recording) now() string { return (time.Duration(r.scrapes-1) * every).String() }

// group is a group of tests for promtool.
type group struct {
	Name     string   `yaml:"name"`
	Interval string   `yaml:"interval"`
	Series   []series `yaml:"input_series"`
	Checks   []check  `yaml:"promql_expr_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

func (r *recording) group() group {
	g := group{Name: r.name, Interval: every.String(), Checks: r.checks}
	for _, name := range slices.Sorted(maps.Keys(r.series)) {
		g.Series = append(g.Series, series{name, strings.Join(r.series[name], " ")})
	}
	return g
}

// judge has Prometheus' own rules engine look at recordings, with the alerts as the file has them.
func judge(t *testing.T, all []*recording) {
	t.Helper()
	file, err := filepath.Abs(rules)
	must(t, err)
	tests := map[string]any{"rule_files": []string{file}, "evaluation_interval": every.String()}
	var groups []group
	for _, r := range all {
		groups = append(groups, r.group())
	}
	tests["tests"] = groups
	text, err := yaml.Marshal(tests)
	must(t, err)
	path := filepath.Join(t.TempDir(), "recorded.yml")
	must(t, os.WriteFile(path, text, 0o600))
	if said, err := exec.Command(program(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, said)
	}
}
