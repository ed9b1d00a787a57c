package manager

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDefaultsAreValid(t *testing.T) {
	o := Defaults()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

// Each mistake is named by its flag, all of them at once.
func TestMistakesAreNamed(t *testing.T) {
	o := Defaults()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(flags)
	args := []string{"--lease-duration=10ms", "--workers=0", "--kube-api-qps=0", "--stop-timeout=-1s", "--log-level=loud"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := o.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); !strings.Contains(err.Error(), name) {
			t.Errorf("nothing about %s in: %v", name, err)
		}
	}
	o = Defaults()
	o.LogFormat = "xml"
	if _, err := o.Logger(nil); err == nil || !strings.Contains(err.Error(), "--log-format") {
		t.Errorf("--log-format=xml: %v", err)
	}
	o.Kubeconfig = "/there/is/none"
	if _, err := o.Config(); err == nil || !strings.Contains(err.Error(), "--kubeconfig") || !strings.Contains(err.Error(), o.Kubeconfig) {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}

func TestLevelsOfTheLog(t *testing.T) {
	for level, want := range map[string]int{"debug": 3, "info": 2, "error": 1} {
		o := Defaults()
		o.LogLevel, o.LogFormat = level, "json"
		var out bytes.Buffer
		log, err := o.Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.V(1).Info("a detail", "took", time.Second)
		log.Info("a fact", "name", "x")
		log.Error(nil, "a failure")
		if n := strings.Count(out.String(), "\n"); n != want {
			t.Errorf("--log-level=%s gives %d lines, want %d:\n%s", level, n, want, out.String())
		}
	}
}
