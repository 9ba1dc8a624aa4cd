package scrape

import (
	"encoding/json"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"

	"github.com/rowlockdb/rowlock/internal/measure"
)

const (
	folder = "../../docs/operations/telemetry"
	rules  = folder + "/alerts.yml"
)

// alert is a rule of Prometheus.
type alert struct {
	Alert       string
	Expr        string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	must(t, yaml.Unmarshal([]byte(read(t, rules)), &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules were read")
	}
	return all
}

// queries are the dashboard's expressions and those of its variables.
func queries(t *testing.T) (all []string) {
	t.Helper()
	var board struct {
		Panels     []struct{ Targets []struct{ Expr string } }
		Templating struct{ List []struct{ Definition string } }
	}
	must(t, json.Unmarshal([]byte(read(t, folder+"/dashboard.json")), &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		all = append(all, v.Definition)
	}
	if len(all) < 20 {
		t.Fatalf("only %d queries were read", len(all))
	}
	return all
}

var metricName = regexp.MustCompile(`\browlock_[a-z_]+`)

// metricsIn are the metrics that a query names, without the labels.
func metricsIn(query string) []string {
	return slices.DeleteFunc(metricName.FindAllString(query, -1), func(name string) bool {
		return name == measure.Label(measure.Class) || name == measure.Label(measure.Client)
	})
}

// onPages are the metrics of both kinds of scrape, with the series of histograms.
func onPages(t *testing.T) map[string]bool {
	t.Helper()
	series := make(map[string]bool)
	locks, a := byCollector(t, nil)
	useOnce(t, locks, "k")
	for name, kind := range scraped(t, a).ours() {
		series[name] = true
		if kind.String() == "HISTOGRAM" {
			series[name+"_bucket"], series[name+"_count"], series[name+"_sum"] = true, true, true
		}
	}
	return series
}

func TestAlertsAskForMetricsThatAreThere(t *testing.T) {
	there := onPages(t)
	for _, a := range alerts(t) {
		names := metricsIn(a.Expr)
		if len(names) == 0 {
			t.Errorf("%s names no metric", a.Alert)
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s asks for %s, which no scrape has", a.Alert, name)
			}
		}
	}
}

func TestTheDashboardAsksForMetricsThatAreThere(t *testing.T) {
	there, shown := onPages(t), make(map[string]bool)
	for _, query := range queries(t) {
		for _, name := range metricsIn(query) {
			if !there[name] {
				t.Errorf("%s asks for %s, which no scrape has", query, name)
			}
			shown[strings.TrimSuffix(name, "_bucket")] = true
		}
	}
	for _, m := range []measure.Metric{measure.Wait, measure.Hold, measure.HandOver} {
		if !shown[m.Prometheus(false)] {
			t.Errorf("the dashboard does not show %s", m.Name)
		}
	}
}

func TestTheRunbookHasEachAlert(t *testing.T) {
	book, headings := read(t, "../../docs/operations/runbook.md"), make(map[string]bool)
	for line := range strings.Lines(book) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## Rowlock"); ok {
			headings["Rowlock"+name] = true
		}
	}
	for _, a := range alerts(t) {
		if !headings[a.Alert] {
			t.Errorf("the runbook has no %s", a.Alert)
		}
		delete(headings, a.Alert)
		if want := "docs/operations/runbook.md#" + strings.ToLower(a.Alert); a.Annotations["runbook"] != want {
			t.Errorf("%s leads to %q, want %q", a.Alert, a.Annotations["runbook"], want)
		}
	}
	if len(headings) > 0 {
		t.Errorf("the runbook has alerts that are none: %v", slices.Collect(maps.Keys(headings)))
	}
	for _, m := range metricsIn(book) {
		if !onPages(t)[m] {
			t.Errorf("the runbook names %s, which no scrape has", m)
		}
	}
}

// docs/metrics.md lists the names.
func TestThePageOfMetricsHasEachName(t *testing.T) {
	page := read(t, "../../docs/metrics.md")
	for _, n := range measure.Numbers {
		if !strings.Contains(page, "`"+n.Name+"`") {
			t.Errorf("docs/metrics.md lacks %s", n.Name)
		}
	}
	for _, m := range []measure.Metric{
		measure.Wait, measure.Hold, measure.HandOver, measure.Renewal, measure.Lost, measure.Forced,
		measure.Expired, measure.Suspected, measure.Evicted, measure.NotEvict, measure.Skewed,
		measure.Moved, measure.Stayed, measure.Recalled,
	} {
		if !strings.Contains(page, "`"+m.Name+"`") {
			t.Errorf("docs/metrics.md lacks %s", m.Name)
		}
	}
}

// alerts_test.yml has a fault for each alert, and a healthy process.
func TestAlertsFireOnTheirFaults(t *testing.T) {
	tests := read(t, folder+"/alerts_test.yml")
	for _, a := range alerts(t) {
		if !strings.Contains(tests, "- name: "+a.Alert+"\n") {
			t.Errorf("alerts_test.yml has no test of %s", a.Alert)
		}
	}
	tool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = folder
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	}
}
