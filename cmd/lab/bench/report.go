package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/custody-storage/custody/cmd/lab/show"
)

// Figures are what was measured.
type Figures struct {
	Claims                             int
	CeilingBefore, CeilingAfter        float64 // claims a second
	ReadyPerSecond, SlowReadyPerSecond float64
	GonePerSecond                      float64
	LightP50, ReadyP50, ReadyP99       time.Duration
	Bare                               cpu      // of the bare writes
	ToReady, ToGone                    snapshot // what the load at once took
	ControllerPeakMB, SidecarPeakMB    float64
}

func (f Figures) ceiling() float64 { return (f.CeilingBefore + f.CeilingAfter) / 2 }

// own is the CPU time of controller and sidecar.
func (f Figures) own() time.Duration {
	return f.ToReady.CPU["controller"] + f.ToReady.CPU["sidecar"] + f.ToGone.CPU["controller"] + f.ToGone.CPU["sidecar"]
}

// line is the last line of the report, for programs.
type line struct {
	Claims              int     `json:"claims"`
	ReadyPerS           float64 `json:"ready_per_s"`
	RawCeilingPerS      float64 `json:"raw_ceiling_per_s"`
	ReadyRatio          float64 `json:"ready_ratio"`
	GonePerS            float64 `json:"gone_per_s"`
	ReadyPerS50ms       float64 `json:"ready_per_s_50ms"`
	LightP50Ms          float64 `json:"light_p50_ms"`
	WritesPerClaim      float64 `json:"writes_per_claim"`
	EventsPerClaim      float64 `json:"events_per_claim"`
	ReadyP50Ms          float64 `json:"ready_p50_ms"`
	ReadyP99Ms          float64 `json:"ready_p99_ms"`
	ControllerPeakMB    float64 `json:"controller_peak_mb"`
	SidecarPeakMB       float64 `json:"sidecar_peak_mb"`
	CPUSeconds          float64 `json:"cpu_s"`
	DriverCallsPerClaim float64 `json:"driver_calls_per_claim"`
}

func (f Figures) line() line {
	n := float64(f.Claims)
	return line{
		Claims:              f.Claims,
		ReadyPerS:           round(f.ReadyPerSecond),
		RawCeilingPerS:      round(f.ceiling()),
		ReadyRatio:          round(f.ReadyPerSecond / f.ceiling()),
		GonePerS:            round(f.GonePerSecond),
		ReadyPerS50ms:       round(f.SlowReadyPerSecond),
		LightP50Ms:          milliseconds(f.LightP50),
		WritesPerClaim:      round(f.ToReady.Requests.writes() / n),
		EventsPerClaim:      round((f.ToReady.Requests.events() + f.ToGone.Requests.events()) / n),
		ReadyP50Ms:          milliseconds(f.ReadyP50),
		ReadyP99Ms:          milliseconds(f.ReadyP99),
		ControllerPeakMB:    round(f.ControllerPeakMB),
		SidecarPeakMB:       round(f.SidecarPeakMB),
		CPUSeconds:          round(f.own().Seconds()),
		DriverCallsPerClaim: round(float64(f.ToReady.calls()+f.ToGone.calls()) / n),
	}
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// Write writes the figures as tables for people, and last one line of JSON.
func (f Figures) Write(out io.Writer) error {
	l := f.line()
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	show.Table(out,
		[]string{fmt.Sprintf("%d claims, driver that does nothing", f.Claims), "here", "aim"},
		[]string{"claims to ready, a second", decimals(f.ReadyPerSecond), ""},
		[]string{"bare writes of claims by 32 clients, a second (before, after)",
			fmt.Sprintf("%.1f (%.1f, %.1f)", f.ceiling(), f.CeilingBefore, f.CeilingAfter), ""},
		[]string{"share of that", fmt.Sprintf("%.2f", l.ReadyRatio), "0.65 or more"},
		[]string{"claims to ready, a second, driver takes 50 ms", decimals(f.SlowReadyPerSecond), fmt.Sprintf("%.1f or more", f.ReadyPerSecond*2/3)},
		[]string{"claims to gone, a second", decimals(f.GonePerSecond), ""},
		[]string{"time to ready in this load, half and 99 of 100 below", fmt.Sprintf("%.1fs, %.1fs", f.ReadyP50.Seconds(), f.ReadyP99.Seconds()), ""},
		[]string{"time to ready at 5 claims a second, half below", fmt.Sprintf("%.0f ms", l.LightP50Ms), "under 60 ms"},
		[]string{"API writes per claim to ready, events aside", decimals2(l.WritesPerClaim), "6 or fewer"},
		[]string{"events per claim, to ready and gone", decimals2(l.EventsPerClaim), ""},
		[]string{"driver calls per claim, to ready and gone", decimals2(l.DriverCallsPerClaim), ""},
		[]string{"peak memory of the controller", fmt.Sprintf("%.0f MB", l.ControllerPeakMB), "60 MB or less"},
		[]string{"peak memory of the sidecar", fmt.Sprintf("%.0f MB", l.SidecarPeakMB), "68 MB or less"},
	)
	fmt.Fprintln(out)
	f.writeCPU(out)
	fmt.Fprintln(out)
	f.writeRequests(out)
	fmt.Fprintln(out)
	_, err = fmt.Fprintln(out, string(text))
	return err
}

func decimals(x float64) string  { return fmt.Sprintf("%.1f", x) }
func decimals2(x float64) string { return fmt.Sprintf("%.2f", x) }

// writeCPU shows who used the processors. The sums say what the shares would be on a
// machine that does nothing else: in this load they are the limit.
func (f Figures) writeCPU(out io.Writer) {
	rows := [][]string{{"CPU per claim, ms", "bare writes", "to ready", "to gone"}}
	names := map[string]bool{}
	for _, c := range []cpu{f.Bare, f.ToReady.CPU, f.ToGone.CPU} {
		for name := range c {
			names[name] = true
		}
	}
	per := func(t time.Duration) string {
		return decimals(milliseconds(t) / float64(f.Claims))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rows = append(rows, []string{name, per(f.Bare[name]), per(f.ToReady.CPU[name]), per(f.ToGone.CPU[name])})
	}
	rows = append(rows, []string{"all", per(f.Bare.sum()), per(f.ToReady.CPU.sum()), per(f.ToGone.CPU.sum())})
	show.Table(out, rows...)
}

// writeRequests shows what was asked of the API server and the driver, per claim.
func (f Figures) writeRequests(out io.Writer) {
	rows := [][]string{{"asked per claim", "answer", "to ready", "to gone"}}
	both := requests{}
	maps.Copy(both, f.ToReady.Requests)
	for k, n := range f.ToGone.Requests {
		both[k] += n
	}
	n := float64(f.Claims)
	for _, k := range both.kinds() {
		if both[k]/n < 0.005 {
			continue
		}
		rows = append(rows, []string{k.verb + " " + k.resource, k.code,
			decimals2(f.ToReady.Requests[k] / n), decimals2(f.ToGone.Requests[k] / n)})
	}
	calls := map[string]bool{}
	for op := range f.ToReady.Calls {
		calls[op] = true
	}
	for op := range f.ToGone.Calls {
		calls[op] = true
	}
	for _, op := range slices.Sorted(maps.Keys(calls)) {
		rows = append(rows, []string{"driver: " + strings.ToUpper(op[:1]) + op[1:] + "Bucket", "OK",
			decimals2(float64(f.ToReady.Calls[op]) / n), decimals2(float64(f.ToGone.Calls[op]) / n)})
	}
	show.Table(out, rows...)
}
