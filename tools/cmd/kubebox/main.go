// Command kubebox is etcd and kube-apiserver in one file, so that what they
// share is linked once. It acts as the program it is called as (by the base
// name of its path, usually a symlink) or as its first argument names.
//
// With the build tag "full" it is kube-controller-manager, kube-scheduler and
// kubectl as well. The tests and "make run" need none of these three, and they
// add minutes to the first build.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as upstream's binary has
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	programs := map[string]func(){
		"etcd":           func() { etcdmain.Main(os.Args) },
		"kube-apiserver": func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	}
	addFull(programs)

	name := filepath.Base(os.Args[0])
	if programs[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run := programs[name]
	if run == nil {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "kubebox: call it as, or with, one of %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	run()
}
