package operate

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluicestream/sluice/internal/vitals"
)

// maxSeries bounds the series of one metric. Jobs have some ten states and
// sinks; a source with more partitions than this still has its sums.
const maxSeries = 1000

// NewRegistry returns a registry of one job's own: its metrics, and those of
// the Go runtime and the process. Registries share nothing, so several jobs of
// one process don't meet.
func NewRegistry(job string, board *vitals.Board) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(job, board), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NewCollector returns the metrics of a job as a collector, for a registry that
// the caller has already. All carry the label job_name, so jobs of several names
// fit into one registry. It isn't called job, which is Prometheus's own name for
// where it scrapes.
func NewCollector(job string, board *vitals.Board) prometheus.Collector {
	c := &collector{board: board}
	always := prometheus.Labels{"job_name": label(job)}
	for _, f := range families() {
		c.parts = append(c.parts, part{f, prometheus.NewDesc(f.name, f.help, f.labels, always)})
	}
	return c
}

// collector turns snapshots into metrics.
type collector struct {
	board *vitals.Board
	parts []part
}

type part struct {
	family
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, p := range c.parts {
		out <- p.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.board.Snapshot()
	for _, p := range c.parts {
		seen := map[string]bool{}
		p.read(s, func(v value, labels ...string) {
			for i, l := range labels {
				labels[i] = label(l)
			}
			id := strings.Join(labels, "\x00")
			if seen[id] || len(seen) >= maxSeries {
				return // a name that is there twice would spoil all metrics
			}
			seen[id] = true
			out <- p.metric(v, labels)
		})
	}
}

// metric is one series' value as Prometheus takes it.
func (p part) metric(v value, labels []string) prometheus.Metric {
	var m prometheus.Metric
	var err error
	if h := v.histogram; h != nil {
		m, err = prometheus.NewConstHistogram(p.desc, uint64(h.Count()), h.Sum.Seconds(), cumulative(*h), labels...)
	} else {
		m, err = prometheus.NewConstMetric(p.desc, p.kind, v.number, labels...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(p.desc, err)
	}
	return m
}

// cumulative counts, for each bound in seconds, the durations up to it.
func cumulative(h vitals.Histogram) map[float64]uint64 {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var n uint64
	for i, bound := range h.Bounds {
		n += uint64(h.Counts[i])
		buckets[bound.Seconds()] = n
	}
	return buckets
}
