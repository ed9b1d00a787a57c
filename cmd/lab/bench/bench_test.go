package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/cosi/wire"
)

// TestLastLine holds the figures' names, by which programs find them.
func TestLastLine(t *testing.T) {
	f := Figures{
		Claims: 10, CeilingBefore: 90, CeilingAfter: 110, ReadyPerSecond: 70, SlowReadyPerSecond: 60, GonePerSecond: 50,
		LightP50: 40 * time.Millisecond, Bare: cpu{},
		ToReady: snapshot{
			Requests: requests{{"POST", "intents", "201"}: 10, {"PUT", "intents", "200"}: 9, {"PUT", "intents", "409"}: 1, {"GET", "buckets", "200"}: 5, {"POST", "events", "201"}: 2},
			Calls:    map[string]int{"create": 10}, CPU: cpu{"sidecar": time.Second, "controller": time.Second},
		},
		ToGone: snapshot{Calls: map[string]int{"delete": 10}, CPU: cpu{"sidecar": time.Second}},
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got map[string]float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"claims": 10, "ready_per_s": 70, "raw_ceiling_per_s": 100, "ready_ratio": 0.7, "gone_per_s": 50, "ready_per_s_50ms": 60,
		"light_p50_ms": 40, "writes_per_claim": 2, "events_per_claim": 0.2, "ready_p50_ms": 0, "ready_p99_ms": 0,
		"controller_peak_mb": 0, "sidecar_peak_mb": 0, "cpu_s": 3, "driver_calls_per_claim": 2,
	}
	if !maps.Equal(got, want) {
		t.Errorf("last line is\n%v, want\n%v", got, want)
	}
	if !strings.Contains(out.String(), "PUT intents") || !strings.Contains(out.String(), "driver: DeleteBucket") {
		t.Errorf("the requests are not shown:\n%s", out.String())
	}
}

func TestRequestsSince(t *testing.T) {
	before := requests{{"POST", "bucketclaims", "201"}: 100, {"GET", "buckets", "200"}: 1}
	after := requests{
		{"POST", "bucketclaims", "201"}: 110, {"GET", "buckets", "200"}: 1, {"PUT", "leases", "200"}: 7,
		{"WATCH", "buckets", "200"}: 3, {"PATCH", "bucketclaims/status", "200"}: 10, {"GET", "configmaps", "200"}: 4,
	}
	got := after.since(before).without("POST", "bucketclaims", 10)
	if n := got.writes(); n != 10 {
		t.Errorf("%v writes, want 10 of status", n)
	}
	want := []request{{"PATCH", "bucketclaims/status", "200"}}
	if kinds := got.kinds(); !slices.Equal(kinds, want) {
		t.Errorf("kinds are %v, want %v", kinds, want)
	}
}

func TestPercentile(t *testing.T) {
	times := []time.Duration{1, 2, 3, 4}
	for p, want := range map[int]time.Duration{0: 1, 50: 3, 99: 4, 100: 4} {
		if got := percentile(times, p); got != want {
			t.Errorf("percentile %d is %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("percentile of nothing is %d", got)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	mb, err := peakMB(os.Getpid())
	if err != nil || mb <= 0 {
		t.Errorf("peak is %v MB, %v", mb, err)
	}
	all, err := cpuOfAll(map[int]string{os.Getpid(): "me"})
	if _, there := all["me"]; err != nil || !there {
		t.Errorf("CPU times are %v, %v", all, err)
	}
}

// TestDriver asks the driver that does nothing by its two sockets.
func TestDriver(t *testing.T) {
	dir, err := os.MkdirTemp("", "bench") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	endpoint := "unix://" + filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Driver(ctx, endpoint) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	client, err := wire.Dial(ctx, endpoint, wire.Options{CallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if name := client.Info().Name; name != DriverName {
		t.Errorf("its name is %s", name)
	}
	control := controlOf(endpoint)
	const delay = 30 * time.Millisecond
	if err := control.delay(ctx, delay); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if b, err := client.CreateBucket(ctx, wire.BucketRequest{Name: "bc-1"}); err != nil || b.ID != "bc-1" {
		t.Errorf("create answers %v, %v", b, err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("it took %s, want %s or more", took, delay)
	}
	calls, err := control.calls(ctx)
	if err != nil || calls["create"] != 1 {
		t.Errorf("calls are %v, %v", calls, err)
	}
}
