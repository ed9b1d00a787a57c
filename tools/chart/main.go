// Command charttemplate renders a Helm chart the way "helm template" does, with
// helm's own libraries and without the rest of helm: manifests to standard
// output, in the order in which helm installs them, notes left out. It talks to
// no cluster.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
)

type options struct {
	chart       string
	values      []string // files, later ones win
	set         []string // key=value, after the files
	release     string
	namespace   string
	kubeVersion string
	apiVersions []string
	includeCRDs bool
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = render(os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "charttemplate:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("charttemplate", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: charttemplate [flags] CHARTDIR")
		f.PrintDefaults()
	}
	list := func(to *[]string) func(string) error {
		return func(s string) error { *to = append(*to, s); return nil }
	}
	f.Func("values", "file with values; may be repeated, later ones win", list(&o.values))
	f.Func("set", "value as key=value in helm's notation; may be repeated", list(&o.set))
	f.Func("api-versions", "group/version or group/version/kind the cluster is said to serve, comma-separated; may be repeated",
		func(s string) error { o.apiVersions = append(o.apiVersions, strings.Split(s, ",")...); return nil })
	f.StringVar(&o.release, "release", "custody", "release name")
	f.StringVar(&o.namespace, "namespace", "default", "namespace of the release")
	f.StringVar(&o.kubeVersion, "kube-version", "", "Kubernetes version the cluster is said to have, for instance v1.37.2")
	f.BoolVar(&o.includeCRDs, "include-crds", false, "print the chart's crds folder too, before all else")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() != 1 {
		f.Usage()
		return o, fmt.Errorf("want one chart folder, have %d arguments", f.NArg())
	}
	o.chart = f.Arg(0)
	return o, nil
}

func render(out io.Writer, o options) error {
	chart, err := loader.LoadDir(o.chart)
	if err != nil {
		return fmt.Errorf("load chart %s: %w", o.chart, err)
	}
	if err := chartutil.ValidateReleaseName(o.release); err != nil {
		return fmt.Errorf("release name %q: %w", o.release, err)
	}

	values := map[string]any{}
	for _, file := range o.values {
		v, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return fmt.Errorf("read values: %w", err)
		}
		values = chartutil.MergeTables(v, values)
	}
	for _, s := range o.set {
		if err := strvals.ParseInto(s, values); err != nil {
			return fmt.Errorf("--set %s: %w", s, err)
		}
	}

	caps := chartutil.DefaultCapabilities.Copy()
	if o.kubeVersion != "" {
		v, err := chartutil.ParseKubeVersion(o.kubeVersion)
		if err != nil {
			return fmt.Errorf("--kube-version %s: %w", o.kubeVersion, err)
		}
		caps.KubeVersion = *v
	}
	caps.APIVersions = append(caps.APIVersions[:len(caps.APIVersions):len(caps.APIVersions)], o.apiVersions...)
	if want := chart.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return fmt.Errorf("chart %s wants Kubernetes %s, but is rendered for %s: set --kube-version", chart.Name(), want, caps.KubeVersion.String())
	}

	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return fmt.Errorf("dependencies of chart %s: %w", chart.Name(), err)
	}
	all, err := chartutil.ToRenderValues(chart, values,
		chartutil.ReleaseOptions{Name: o.release, Namespace: o.namespace, Revision: 1, IsInstall: true}, caps)
	if err != nil {
		return fmt.Errorf("values of chart %s: %w", chart.Name(), err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return fmt.Errorf("render chart %s: %w", chart.Name(), err)
	}
	for name := range files {
		if path.Base(name) == "NOTES.txt" {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return fmt.Errorf("sort manifests of chart %s: %w", chart.Name(), err)
	}

	var b strings.Builder
	document := func(source, text string) { fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", source, strings.TrimSpace(text)) }
	if o.includeCRDs {
		for _, crd := range chart.CRDObjects() {
			document(crd.Filename, string(crd.File.Data))
		}
	}
	for _, m := range manifests {
		document(m.Name, m.Content)
	}
	for _, h := range hooks {
		if !isTest(h) {
			document(h.Path, h.Manifest)
		}
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// isTest says whether a hook runs only on "helm test": such a Pod is no part of
// an installation.
func isTest(h *release.Hook) bool {
	for _, e := range h.Events {
		if e != release.HookTest {
			return false
		}
	}
	return true
}
