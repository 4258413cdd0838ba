package gateway

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// metrics counts what the gateway does. No label holds what a stranger chose.
type metrics struct {
	registry   *prometheus.Registry
	offers     *prometheus.CounterVec
	rejections *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	// parkedRefused counts what was parked and then refused.
	parkedRefused *prometheus.CounterVec
	wakes         *prometheus.CounterVec
	// discoveryDropped counts greets and answers for hosted peers that were left out.
	discoveryDropped prometheus.Counter
	groupSize        prometheus.Histogram
	commitTime       prometheus.Histogram
}

func newMetrics(g *Gateway) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		offers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_offers_total", Help: "Frames settled, by carrier and verdict.",
		}, []string{"carrier", "verdict"}),
		rejections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_rejections_total", Help: "Frames refused, by carrier and reason code.",
		}, []string{"carrier", "reason"}),
		parkedRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_parked_refused_total", Help: "Parked messages that ended in a refusal, by carrier and reason code.",
		}, []string{"carrier", "reason"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_deliveries_total", Help: "Outcomes of deliveries and of attempts, by carrier and state.",
		}, []string{"carrier", "state"}),
		wakes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_wakes_total", Help: "Wakes that came to an end, by state.",
		}, []string{"state"}),
		discoveryDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_discovery_dropped_total", Help: "Greets and whois answers for hosted peers that were left out because too many waited.",
		}),
		groupSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gateway_commit_offers", Help: "Offers that shared a commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commitTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gateway_commit_seconds", Help: "Time of a commit, waiting for a locked store included.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
	}
	m.registry.MustRegister(m.offers, m.rejections, m.parkedRefused, m.deliveries, m.wakes, m.discoveryDropped, m.groupSize, m.commitTime,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), fleetCollector{g})
	return m
}

// Metrics serves the counters in Prometheus' text format.
func (g *Gateway) Metrics() http.Handler {
	return promhttp.HandlerFor(g.metrics.registry, promhttp.HandlerOpts{})
}

func (m *metrics) commit(offers int, took time.Duration) {
	if offers > 0 {
		m.groupSize.Observe(float64(offers))
	}
	m.commitTime.Observe(took.Seconds())
}

func (m *metrics) settled(carrier string, s core.Settlement) {
	m.offers.WithLabelValues(carrier, verdictLabel(s)).Inc()
	if s.Rejection != nil {
		m.rejections.WithLabelValues(carrier, string(s.Rejection.Reason)).Inc()
	}
}

// gaveUp counts parked messages that ended in a refusal, long after their
// carrier was told that they were committed.
func (m *metrics) gaveUp(rows []store.Rejection) {
	for i := range rows {
		m.parkedRefused.WithLabelValues(rows[i].Carrier, string(rows[i].Reason)).Inc()
	}
}

func (m *metrics) woken(state core.WakeState) { m.wakes.WithLabelValues(string(state)).Inc() }

func verdictLabel(s core.Settlement) string {
	switch {
	case s.Verdict == core.VerdictRejected:
		return "rejected"
	case s.Echo:
		return "echo"
	case s.Duplicate:
		return "duplicate"
	case s.Parked:
		return "parked"
	default:
		return "committed"
	}
}

func (m *metrics) delivered(carrier string, state core.DeliveryState, n int) {
	label := string(state)
	if state == core.DeliveryPending {
		label = "retried"
	}
	m.deliveries.WithLabelValues(carrier, label).Add(float64(n))
}

// noteResult tells of the outcome of one delivery; one that is given up is told
// to people too.
func (g *Gateway) noteResult(r store.Result) {
	g.metrics.delivered(g.dir.carrierOf(r.ID.Recipient), r.State, 1)
	if r.State == core.DeliveryDead {
		g.log.Warn("a delivery is given up; it is a dead letter now", "delivery", r.ID, "recipient", g.dir.nameOf(r.ID.Recipient),
			"reason", r.Reason, "error", r.LastError)
	}
}

// noteEnding tells of deliveries that ended together.
func (g *Gateway) noteEnding(e endedBatch) {
	g.metrics.delivered(g.dir.carrierOf(e.recipient), e.state, e.n)
	if e.state == core.DeliveryDead {
		g.log.Warn("the oldest deliveries are given up; they are dead letters now", "recipient", g.dir.nameOf(e.recipient), "deliveries", e.n, "reason", e.reason)
	}
}

// fleetCollector reads what the carriers and queues say when it is asked.
type fleetCollector struct{ gateway *Gateway }

var (
	readyDesc   = prometheus.NewDesc("gateway_carrier_ready", "1 while the carrier is ready.", []string{"carrier"}, nil)
	droppedDesc = prometheus.NewDesc("gateway_carrier_dropped_total", "Frames that the carrier knows it lost.", []string{"carrier"}, nil)
	pendingDesc = prometheus.NewDesc("gateway_pending_deliveries", "Deliveries that wait, by carrier.", []string{"carrier"}, nil)
	queueDesc   = prometheus.NewDesc("gateway_queue_offers", "Offers that wait for a commit.", nil, nil)
)

func (fleetCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDesc
	out <- droppedDesc
	out <- pendingDesc
	out <- queueDesc
}

func (f fleetCollector) Collect(out chan<- prometheus.Metric) {
	for _, c := range f.gateway.Carriers() {
		ready := 0.0
		if c.State == core.StateReady {
			ready = 1
		}
		out <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready, c.Name)
		out <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(c.Dropped), c.Name)
	}
	pending := map[string]int64{}
	for _, r := range f.gateway.dir.snapshot() {
		pending[r.Carrier] += r.pending
	}
	for carrier, n := range pending {
		out <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), carrier)
	}
	out <- prometheus.MustNewConstMetric(queueDesc, prometheus.GaugeValue, float64(len(f.gateway.committer.queue)))
}
