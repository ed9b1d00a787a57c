package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// request is a kind of request to the API server.
type request struct{ verb, resource, code string }

// requests counts requests by kind, as the API server does itself.
type requests map[request]float64

// countRequests reads the API server's counters.
func countRequests(ctx context.Context, config *rest.Config) (requests, error) {
	http_, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http_.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the API server's counters: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the API server's counters: it answers %s", resp.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the API server's counters: %w", err)
	}
	counts := requests{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		counts[requestOf(m)] += m.GetCounter().GetValue()
	}
	return counts, nil
}

func requestOf(m *dto.Metric) request {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	r := request{verb: labels["verb"], resource: labels["resource"], code: labels["code"]}
	if sub := labels["subresource"]; sub != "" {
		r.resource += "/" + sub
	}
	return r
}

// since is what was asked between two counts. Leases are left out, which are
// renewed by the clock and not by the claim, and so are watches.
func (r requests) since(before requests) requests {
	d := requests{}
	for k, n := range r {
		if n -= before[k]; n > 0 && k.resource != "leases" && k.verb != "WATCH" && ours(k) {
			d[k] = n
		}
	}
	return d
}

// ours tells whether requests for a resource come with claims. The API server
// itself asks for others.
func ours(k request) bool {
	base, _, _ := strings.Cut(k.resource, "/")
	switch base {
	case "bucketclaims", "buckets", "bucketclasses", "bucketaccesses", "intents", "events", "secrets":
		return true
	}
	return false
}

// without takes away what the bench itself asked.
func (r requests) without(verb, resource string, n int) requests {
	left := float64(n)
	for k, have := range r {
		if k.verb == verb && k.resource == resource && left > 0 {
			took := min(have, left)
			r[k], left = have-took, left-took
		}
	}
	return r
}

// write tells whether a request changes something.
func (k request) write() bool {
	switch k.verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

func (k request) event() bool { return k.resource == "events" }

// writes are those that change something, events aside, refused ones with them.
func (r requests) writes() (n float64) {
	for k, have := range r {
		if k.write() && !k.event() {
			n += have
		}
	}
	return n
}

func (r requests) events() (n float64) {
	for k, have := range r {
		if k.write() && k.event() {
			n += have
		}
	}
	return n
}

// kinds are those that were asked, writes first, the most frequent first.
func (r requests) kinds() []request {
	var all []request
	for k, n := range r {
		if n > 0 {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b request) int {
		if a.write() != b.write() {
			if a.write() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb), cmp.Compare(a.code, b.code))
	})
	return all
}
