package proxy_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/custody-storage/custody/test/proxy"
)

// server counts the writes it has done and streams a watch.
func server(t *testing.T) (*rest.Config, *atomic.Int32) {
	t.Helper()
	var writes atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		switch {
		case r.URL.Query().Get("watch") != "":
			for i := 0; ; i++ {
				if _, err := fmt.Fprintln(w, "event", i); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		case r.Method == http.MethodPut:
			writes.Add(1)
		}
		fmt.Fprintln(w, "fine")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, &writes
}

func TestProxy(t *testing.T) {
	config, writes := server(t)
	p, err := proxy.New(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	door, err := p.Door("sidecar", config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(door.Config())
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/objectstorage.k8s.io/v1alpha2/buckets/bc-1/status"
	do := func(ctx context.Context, method, path string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, method, door.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	ctx := t.Context()
	if text, err := do(ctx, http.MethodPut, path); err != nil || text != "fine\n" || writes.Load() != 1 {
		t.Fatalf("nothing in the way: %q, %v, %d writes", text, err, writes.Load())
	}

	var seen proxy.Request
	rule := func(f proxy.Fault) { p.Aim(func(r proxy.Request) (proxy.Fault, bool) { seen = r; return f, true }) }
	rule(proxy.DropRequest)
	if _, err := do(ctx, http.MethodPut, path); err == nil || writes.Load() != 1 {
		t.Errorf("dropped request: %v, %d writes", err, writes.Load())
	}
	if want := (proxy.Request{Client: "sidecar", Verb: "update", Resource: "buckets/status", Name: "bc-1"}); seen != want {
		t.Errorf("a rule saw %+v", seen)
	}
	rule(proxy.DropReply)
	if _, err := do(ctx, http.MethodPut, path); err == nil || writes.Load() != 2 {
		t.Errorf("dropped reply: %v, %d writes", err, writes.Load())
	}
	p.Aim(nil)

	// A watch passes, and breaks when its door is cut.
	p.Set(proxy.Faults{DropRequest: 1})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, door.Config().Host+"/apis/g/v/buckets?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	p.Set(proxy.Faults{})
	buffer := make([]byte, 8)
	if _, err := io.ReadFull(watch.Body, buffer); err != nil {
		t.Fatal(err)
	}
	door.Cut()
	if _, err := io.Copy(io.Discard, watch.Body); err == nil {
		t.Error("a watch through a door that is cut ended in order")
	}
	if _, err := do(ctx, http.MethodPut, path); err == nil {
		t.Error("a door that is cut lets a request pass")
	}
	door.Mend()
	if _, err := do(ctx, http.MethodPut, path); err != nil || writes.Load() != 3 {
		t.Errorf("after mending: %v, %d writes", err, writes.Load())
	}
	if c := p.Counts(); c[proxy.DropRequest] != 1 || c[proxy.DropReply] != 1 {
		t.Errorf("counted %v", c)
	}
}
