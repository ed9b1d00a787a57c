package controller

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// recently is how long another controller counts as active after it wrote.
const recently = 10 * time.Minute

// metrics are those of this package; controller-runtime has the rest (queues, durations,
// errors, requests).
type metrics struct {
	refused   *prometheus.CounterVec
	other     prometheus.GaugeFunc
	otherSeen atomic.Int64 // Unix nanoseconds
}

func newMetrics() *metrics {
	m := &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "custody_cosi_controller_warnings_total",
			Help: "Warnings shown on COSI objects, by kind and reason.",
		}, []string{"kind", "reason"}),
	}
	m.other = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "custody_cosi_other_controller",
		Help: "1 if another COSI controller wrote objects of this one within the last 10 minutes, else 0.",
	}, func() float64 {
		if at := m.otherSeen.Load(); at != 0 && time.Since(time.Unix(0, at)) < recently {
			return 1
		}
		return 0
	})
	return m
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.refused, m.other} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
