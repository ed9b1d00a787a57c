package controller_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate stands between a client and the API server: it counts requests, can lose the
// reply of one or refuse it, and can hold back the events of a watch.
type gate struct {
	mu     sync.Mutex
	seen   []sent
	rules  []*rule
	frozen map[string]chan struct{} // by resource; closed when its watches go on
}

// sent is one request, and when it was sent.
type sent struct {
	method, path, body string
	at                 time.Time
}

// about tells whether a request names something, in its path or body.
func (s sent) about(name string) bool {
	return strings.Contains(s.path, name) || strings.Contains(s.body, name)
}

// write tells whether the request writes something that counts: not an event, not a lease.
func (s sent) write() bool {
	return s.method != http.MethodGet && !strings.Contains(s.path, "/leases") && !s.event()
}

func (s sent) event() bool { return strings.Contains(s.path, "/events") }

// rule changes the fate of the first request that it matches, or of all of them.
type rule struct {
	match func(sent) bool
	// status, if not 0, is answered, and the API server never hears of the request.
	status int
	// lost: the request is carried out, but its reply does not arrive.
	lost bool
	// always: until the rule is taken back.
	always bool
	used   bool // it has met a request
	over   bool // it is not in force any more
}

var errLost = errors.New("the reply was lost")

func newGate() *gate { return &gate{frozen: map[string]chan struct{}{}} }

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper { return &through{g, next} }

type through struct {
	*gate
	next http.RoundTripper
}

func (t *through) RoundTrip(r *http.Request) (*http.Response, error) {
	s := sent{method: r.Method, path: r.URL.Path, at: time.Now()}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.body, r.Body = string(body), io.NopCloser(bytes.NewReader(body))
	}
	hit := t.take(s)
	if hit != nil && hit.status != 0 {
		answer := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"by the test","reason":"` +
			strings.ReplaceAll(http.StatusText(hit.status), " ", "") + `","code":` + itoa(hit.status) + `}`
		return &http.Response{StatusCode: hit.status, Status: http.StatusText(hit.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if hit != nil && hit.lost {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, errLost
	}
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" {
		response.Body = &held{response.Body, t.gate, s.path[strings.LastIndex(s.path, "/")+1:]}
	}
	return response, nil
}

func itoa(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

func (g *gate) take(s sent) *rule {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, s)
	for _, r := range g.rules {
		if !r.over && r.match(s) {
			r.used, r.over = true, !r.always
			return r
		}
	}
	return nil
}

// add puts a rule in force until the function that it returns is called, or the test ends.
func (g *gate) add(t *testing.T, r *rule) (end func()) {
	t.Helper()
	g.mu.Lock()
	g.rules = append(g.rules, r)
	g.mu.Unlock()
	end = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		r.over = true
	}
	t.Cleanup(func() {
		end()
		if !r.used {
			t.Error("no request met the rule of the test, so it proves nothing")
		}
	})
	return end
}

// requests are those so far that match.
func (g *gate) requests(match func(sent) bool) (found []sent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seen {
		if match(s) {
			found = append(found, s)
		}
	}
	return found
}

// freeze holds the watches of a resource back until the function that it returns is
// called, or the test ends.
func (g *gate) freeze(t *testing.T, resource string) (thaw func()) {
	t.Helper()
	stop := make(chan struct{})
	g.mu.Lock()
	g.frozen[resource] = stop
	g.mu.Unlock()
	var once sync.Once
	thaw = func() {
		once.Do(func() {
			g.mu.Lock()
			delete(g.frozen, resource)
			g.mu.Unlock()
			close(stop)
		})
	}
	t.Cleanup(thaw)
	return thaw
}

// held is the body of a watch.
type held struct {
	io.ReadCloser
	gate     *gate
	resource string
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.gate.mu.Lock()
	wait := h.gate.frozen[h.resource]
	h.gate.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return n, err
}
