package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/promrowlock"
)

var samples = regexp.MustCompile(`(?m)^(#|\S+_(bucket|sum|count)\b).*\n`)

// metered is another process, whose metrics are scraped.
func (s *stage) metered(identity string, change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	c, err := promrowlock.New(promrowlock.Config{})
	s.scene.OK(err)
	client := s.scene.Client(append(change, func(cfg *rowlock.Config) {
		cfg.Identity, cfg.Hooks = identity, c.Hooks()
	})...)
	s.exposes(c, client)
	return client
}

func (s *stage) exposes(c *promrowlock.Collector, client *rowlock.Client) {
	s.Helper()
	s.scene.OK(c.Observe(client))
	registry := prometheus.NewRegistry()
	s.scene.OK(registry.Register(c))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.Cleanup(server.Close)
	s.scraped = server.URL
}

// metrics are the samples that a Prometheus reads of the process, without those of histograms.
func (s *stage) metrics() string {
	s.Helper()
	answer, err := http.Get(s.scraped)
	s.scene.OK(err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	s.scene.OK(err)
	return samples.ReplaceAllString(string(text), "")
}
