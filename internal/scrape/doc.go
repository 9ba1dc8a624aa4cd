// Package scrape has the tests of otelrowlock and promrowlock together, on a real scrape and a real
// receiver, and those of the alerts and the dashboard in docs/operations/telemetry. It is a module
// of its own, so that users of either get no exporter that they do not use.
package scrape
