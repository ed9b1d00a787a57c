package sidecar

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/provision"
)

// metrics are those of one driver's sidecar.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	strays  *prometheus.CounterVec
	others  *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "custody_cosi_driver_calls_total", Help: "Calls to the driver, by kind, call and answer."}, []string{"kind", "op", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "custody_cosi_driver_call_seconds", Help: "How long calls to the driver took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}}, []string{"kind", "op"}),
		strays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "custody_cosi_strays_deleted_total", Help: "Things deleted that were made beside the one that serves, or found late."}, []string{"kind"}),
		others: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "custody_cosi_other_controller", Help: "Objects whose status another program writes too."}, []string{"kind"}),
	}
}

func (m *metrics) call(k v1alpha1.Kind, op provision.Op, c provision.Code, took time.Duration) {
	m.calls.WithLabelValues(string(k), opName(op), c.String()).Inc()
	m.seconds.WithLabelValues(string(k), opName(op)).Observe(took.Seconds())
}

func (m *metrics) stray(k v1alpha1.Kind)           { m.strays.WithLabelValues(string(k)).Inc() }
func (m *metrics) otherController(k v1alpha1.Kind) { m.others.WithLabelValues(string(k)).Inc() }

// register makes the metrics known, with those of the adapters. Where a process runs two sidecars of one driver, as tests
// do, the first one's are shown.
func (m *metrics) register(to prometheus.Registerer, driver string, adapters ...*adapter) error {
	to = prometheus.WrapRegistererWith(prometheus.Labels{"driver": driver}, to)
	for _, c := range []prometheus.Collector{m.calls, m.seconds, m.strays, m.others, counter{adapters}} {
		var already prometheus.AlreadyRegisteredError
		if err := to.Register(c); err != nil && !errors.As(err, &already) {
			return err
		}
	}
	return nil
}

// counter counts Intents as the adapters know them, at the moment of asking.
type counter struct{ adapters []*adapter }

func (counter) intents() *prometheus.Desc {
	return prometheus.NewDesc("custody_cosi_intents",
		"Intents by phase; doubt: a create was never heard of; stuck: a person has to decide or to mend something; overdue: not at rest for longer than --overdue.",
		[]string{"kind", "phase", "doubt", "stuck", "overdue"}, nil)
}

// Describe implements prometheus.Collector.
func (c counter) Describe(to chan<- *prometheus.Desc) { to <- c.intents() }

// Collect implements prometheus.Collector.
func (c counter) Collect(to chan<- prometheus.Metric) {
	for _, a := range c.adapters {
		counts := map[state]int{}
		for _, st := range a.entries.states() {
			if st.phase != "" {
				counts[st]++
			}
		}
		for st, n := range counts {
			to <- prometheus.MustNewConstMetric(c.intents(), prometheus.GaugeValue, float64(n), string(a.kind.intents()), st.phase,
				strconv.FormatBool(st.doubt), strconv.FormatBool(st.stuck), strconv.FormatBool(st.overdue))
		}
	}
}
