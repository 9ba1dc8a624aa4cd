package main

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Minute.Microseconds(), 3) // µs
}

// times takes down how long pairs took. Workers share a few histograms: one for each of a thousand would take more memory than all else.
type times [8]struct {
	sync.Mutex
	h *hdrhistogram.Histogram
}

func (t *times) record(worker int, d time.Duration) {
	own := &t[worker%len(t)]
	own.Lock()
	defer own.Unlock()
	if own.h == nil {
		own.h = newHistogram()
	}
	_ = own.h.RecordValue(max(1, d.Microseconds()))
}

func (t *times) addTo(h *hdrhistogram.Histogram) {
	for i := range t {
		if t[i].h != nil {
			h.Merge(t[i].h)
		}
	}
}

// ms is a percentile in milliseconds.
func ms(h *hdrhistogram.Histogram, percentile float64) float64 {
	return float64(h.ValueAtPercentile(percentile)) / 1e3
}
