package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// Faults gives the probability of each fault for one request, 0 to 1. At most one
// befalls a request.
type Faults struct {
	DropRequest float64
	DropReply   float64
	Delay       float64
	DelayBy     time.Duration // at most
}

// Fault is what befalls one request.
type Fault string

const (
	None        Fault = ""
	DropRequest Fault = "drop-request"
	DropReply   Fault = "drop-reply"
	Delay       Fault = "delay"
	// Refused is any request at a door that is cut.
	Refused Fault = "refused"
)

// Request is a request as rules see it.
type Request struct {
	Client   string // the door's name
	Verb     string // get, list, watch, create, update, patch, delete
	Resource string // "buckets", "buckets/status"
	Name     string // of the object, where the path has one
}

// Rule decides on one request. It returns false where it has nothing to say, and
// the dice are thrown.
type Rule func(Request) (Fault, bool)

// Proxy stands before one API server.
type Proxy struct {
	upstream *httputil.ReverseProxy
	tls      *tls.Config
	ca       []byte

	mu     sync.Mutex
	dice   *rand.Rand
	faults Faults
	rule   Rule
	counts map[Fault]int
	doors  []*Door
}

// Door is where one client comes in.
type Door struct {
	Name   string
	proxy  *Proxy
	server *http.Server
	config *rest.Config

	mu   sync.Mutex
	cut  context.Context // done while the door is cut
	shut context.CancelFunc
}

// New makes a proxy to the API server of a configuration. The configuration's
// credentials aren't used: each client brings its own.
func New(upstream *rest.Config, seed uint64) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("proxy: API server's address %q: %w", upstream.Host, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(upstream.CAData) {
		return nil, errors.New("proxy: the configuration has no CA in CAData")
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("proxy: make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("proxy: make a certificate: %w", err)
	}
	p := &Proxy{
		tls: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ca: certPEM,
		dice: rand.New(rand.NewPCG(seed, 2)), counts: map[Fault]int{},
	}
	p.upstream = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
		},
		FlushInterval: -1, // a watch's events pass at once
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return p, nil
}

// Set has the dice thrown with these probabilities from now on.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Aim has a rule asked before the dice, for every request but watches; nil ends
// that. The rule must not call the Proxy.
func (p *Proxy) Aim(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// Counts tells how many requests met each fault.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Door opens a door for a client. The client's own configuration gives the
// credentials; Door.Config is the one to hand to it.
func (p *Proxy) Door(name string, client *rest.Config) (*Door, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: door for %s: %w", name, err)
	}
	d := &Door{Name: name, proxy: p}
	d.cut, d.shut = context.WithCancel(context.Background())
	d.config = rest.CopyConfig(client)
	d.config.Host = "https://" + l.Addr().String()
	d.config.CAData, d.config.CAFile = p.ca, ""
	d.server = &http.Server{Handler: d, TLSConfig: p.tls.Clone(), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = d.server.ServeTLS(l, "", "") }()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doors = append(p.doors, d)
	return d, nil
}

// Config is how the client reaches the API server by this door.
func (d *Door) Config() *rest.Config { return rest.CopyConfig(d.config) }

// Cut breaks all that the client has under way, watches too, and lets nothing pass
// until Mend.
func (d *Door) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut()
}

// Mend lets requests pass again.
func (d *Door) Mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut.Err() != nil {
		d.cut, d.shut = context.WithCancel(context.Background())
	}
}

// Close ends all doors.
func (p *Proxy) Close() error {
	p.mu.Lock()
	doors := p.doors
	p.doors = nil
	p.mu.Unlock()
	var errs []error
	for _, d := range doors {
		d.Cut()
		errs = append(errs, d.server.Close())
	}
	return errors.Join(errs...)
}

// ServeHTTP passes one request, or not.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	closed := d.cut
	d.mu.Unlock()
	if closed.Err() != nil {
		d.proxy.count(Refused)
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(closed, cancel)
	defer stop()
	r = r.WithContext(ctx)

	fault, by := d.proxy.pick(read(d.Name, r))
	switch fault {
	case DropRequest:
		panic(http.ErrAbortHandler)
	case DropReply:
		// The server is to do all of it, though the client hangs up.
		d.proxy.upstream.ServeHTTP(sink{http.Header{}}, r.WithContext(context.WithoutCancel(ctx)))
		panic(http.ErrAbortHandler)
	case Delay:
		select {
		case <-time.After(by):
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
	d.proxy.upstream.ServeHTTP(w, r)
	if closed.Err() != nil {
		panic(http.ErrAbortHandler) // a watch must break, not end
	}
}

// sink takes an answer that nobody gets.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

func (p *Proxy) count(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[f]++
}

func (p *Proxy) pick(r Request) (Fault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Verb == "watch" || r.Resource == "" {
		return None, 0
	}
	fault := None
	said := false
	if p.rule != nil {
		fault, said = p.rule(r)
	}
	if !said {
		fault = p.faults.throw(p.dice)
	}
	if fault == None {
		return None, 0
	}
	p.counts[fault]++
	if p.faults.DelayBy <= 0 {
		return fault, 0
	}
	return fault, time.Duration(p.dice.Int64N(int64(p.faults.DelayBy)))
}

func (f Faults) throw(dice *rand.Rand) Fault {
	x := dice.Float64()
	for _, c := range []struct {
		fault  Fault
		chance float64
	}{{DropRequest, f.DropRequest}, {DropReply, f.DropReply}, {Delay, f.Delay}} {
		if x -= c.chance; x < 0 {
			return c.fault
		}
	}
	return None
}
